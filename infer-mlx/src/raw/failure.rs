//! From statuses of the door to what went wrong.

use infer_core::ErrorKind;
use infer_sys::mlx::{Api, bindings as sys};
use std::ffi::CStr;

/// What MLX, or its door, has to say against a call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// A status that is not OK, with the message that belongs to it: to be asked for at once.
#[cold]
#[inline(never)]
pub(super) fn failure(api: Api, status: i32) -> Failure {
    // SAFETY: the entry has no precondition.
    let text = unsafe { api.last_error() };
    let message = if text.is_null() {
        String::new()
    } else {
        // SAFETY: not NULL; "Ends with NUL; lives until the next failure on this thread", and it is copied at once.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    };
    Failure { kind: kind_of(status), code: status.into(), message }
}

/// Turns a status into a result.
#[inline]
pub(super) fn check(api: Api, status: i32) -> Result<(), Failure> {
    if status == sys::INFER_MLX_OK { Ok(()) } else { Err(failure(api, status)) }
}

/// Something that the table has not kept to.
#[cold]
pub(super) fn broken(message: &str) -> Failure {
    Failure { kind: ErrorKind::Runtime, code: sys::INFER_MLX_UNKNOWN.into(), message: message.to_owned() }
}

fn kind_of(status: i32) -> ErrorKind {
    match status {
        sys::INFER_MLX_MEMORY => ErrorKind::OutOfMemory,
        sys::INFER_MLX_ARGUMENT | sys::INFER_MLX_UNEVALUATED => ErrorKind::InvalidInput,
        sys::INFER_MLX_UNSUPPORTED => ErrorKind::Unsupported,
        sys::INFER_MLX_THREAD => ErrorKind::SessionLost,
        sys::INFER_MLX_ENDING => ErrorKind::Closed,
        _ => ErrorKind::Runtime,
    }
}

impl Failure {
    /// An argument that is refused here.
    #[cold]
    pub(crate) fn invalid(message: String) -> Self {
        Self { kind: ErrorKind::InvalidInput, code: sys::INFER_MLX_ARGUMENT.into(), message }
    }

    /// Whether elements were asked for that nothing has computed yet.
    pub(crate) fn is_unevaluated(&self) -> bool {
        self.code == i64::from(sys::INFER_MLX_UNEVALUATED)
    }

    /// Of an operation that only looks at shapes and types: what MLX does not take there is the caller's.
    #[cold]
    pub(super) fn of_shapes(mut self) -> Self {
        if self.code == i64::from(sys::INFER_MLX_EXCEPTION) {
            self.kind = ErrorKind::InvalidInput;
        }
        self
    }
}
