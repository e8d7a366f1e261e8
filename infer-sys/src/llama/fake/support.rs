//! What every entry of the faked door needs: results, out parameters, buffers.

use std::ffi::{CStr, c_char};

use crate::llama::bindings::{
    INFER_LLAMA_ARGUMENT, INFER_LLAMA_EXCEPTION, INFER_LLAMA_FAILED, INFER_LLAMA_OK, INFER_LLAMA_TOO_SMALL,
    INFER_LLAMA_UNSUPPORTED, infer_llama_error,
};

/// A status that is not OK, with its message.
pub(super) struct Failure {
    status: i32,
    message: String,
}

pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(super) fn argument(message: impl Into<String>) -> Self {
        Self { status: INFER_LLAMA_ARGUMENT, message: message.into() }
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self { status: INFER_LLAMA_FAILED, message: message.into() }
    }

    pub(super) fn exception(message: impl Into<String>) -> Self {
        Self { status: INFER_LLAMA_EXCEPTION, message: message.into() }
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self { status: INFER_LLAMA_UNSUPPORTED, message: message.into() }
    }

    fn too_small() -> Self {
        Self { status: INFER_LLAMA_TOO_SMALL, message: "the buffer is too small".to_owned() }
    }
}

/// The status of an entry, its error written where it failed.
///
/// # Safety
///
/// `error` is NULL or points to an `infer_llama_error` that nobody else uses now.
pub(super) unsafe fn finish(error: *mut infer_llama_error, outcome: Outcome) -> i32 {
    let Err(failure) = outcome else { return INFER_LLAMA_OK };
    // SAFETY: the caller vouches for it.
    let Some(error) = (unsafe { error.as_mut() }) else { return failure.status };
    error.code = failure.status;
    let last = error.message.len() - 1;
    let mut end = failure.message.len().min(last);
    while !failure.message.is_char_boundary(end) {
        end -= 1;
    }
    for (to, from) in error.message.iter_mut().zip(&failure.message.as_bytes()[..end]) {
        *to = *from as c_char;
    }
    error.message[end] = 0;
    failure.status
}

/// Writes an out parameter.
///
/// # Safety
///
/// `out` is NULL or valid for writing a `T`.
pub(super) unsafe fn put<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(Failure::argument("an out parameter is NULL"));
    }
    // SAFETY: not NULL, and the caller vouches for the rest.
    unsafe { out.write(value) };
    Ok(())
}

/// Borrows an in parameter.
///
/// # Safety
///
/// `pointer` is NULL or points to a `T` that lives for `'a` and that nobody writes meanwhile.
pub(super) unsafe fn get<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: the caller vouches for it.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument(format!("{name} is NULL")))
}

/// Borrows an object that the call changes.
///
/// # Safety
///
/// `pointer` is NULL or points to a `T` that lives for `'a` and that nobody else uses meanwhile.
pub(super) unsafe fn get_mut<'a, T>(pointer: *mut T, name: &str) -> Outcome<&'a mut T> {
    // SAFETY: the caller vouches for it.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::argument(format!("{name} is NULL")))
}

/// Borrows an array; (NULL, 0) is the empty one.
///
/// # Safety
///
/// `pointer` is NULL or points to `n` values that live for `'a` and that nobody writes meanwhile.
pub(super) unsafe fn array<'a, T>(pointer: *const T, n: usize, name: &str) -> Outcome<&'a [T]> {
    if n == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    // SAFETY: not NULL, and the caller vouches for the rest.
    Ok(unsafe { std::slice::from_raw_parts(pointer, n) })
}

/// Borrows a string.
///
/// # Safety
///
/// `pointer` is NULL or points to a NUL-terminated string that lives for `'a` and that nobody writes meanwhile.
pub(super) unsafe fn string<'a>(pointer: *const c_char, name: &str) -> Outcome<&'a CStr> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL")));
    }
    // SAFETY: not NULL, and the caller vouches for the rest.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// Copies values into a caller's buffer, or says how many there are.
///
/// # Safety
///
/// `buf` is NULL or valid for writing `cap` values; `len` is NULL or valid for writing.
pub(super) unsafe fn fill<T: Copy>(buf: *mut T, cap: usize, len: *mut usize, values: &[T]) -> Outcome {
    // SAFETY: the caller vouches for `len`.
    unsafe { put(len, values.len()) }?;
    if values.is_empty() {
        return Ok(());
    }
    if buf.is_null() || cap < values.len() {
        return Err(Failure::too_small());
    }
    // SAFETY: `buf` is valid for `cap` values, which are no fewer than these, and a caller's buffer is no memory of ours.
    unsafe { buf.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    Ok(())
}

/// Copies a string with its NUL; the length is told without it.
///
/// # Safety
///
/// As for [`fill`].
pub(super) unsafe fn fill_string(buf: *mut c_char, cap: usize, len: *mut usize, text: &CStr) -> Outcome {
    let bytes = text.to_bytes_with_nul();
    // SAFETY: the caller vouches for `len`.
    unsafe { put(len, bytes.len() - 1) }?;
    if buf.is_null() || cap < bytes.len() {
        return Err(Failure::too_small());
    }
    // SAFETY: `buf` is valid for `cap` bytes, which are no fewer than these, and a caller's buffer is no memory of ours.
    unsafe { buf.copy_from_nonoverlapping(text.as_ptr(), bytes.len()) };
    Ok(())
}
