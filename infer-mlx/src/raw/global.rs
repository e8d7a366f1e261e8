//! What a process and a thread have once: the library, and a stream on it.
//!
//! The library is never closed (its threads would not survive it), so its table lives for ever. A thread has one [`Runtime`], which everything that is made
//! on it shares, as long as something of it is there: two streams of a thread would only wait for each other.

use super::{Failure, Runtime};
use crate::error::{BACKEND, error};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::mlx::Api;
use std::{
    cell::RefCell,
    ptr,
    rc::{Rc, Weak},
    sync::OnceLock,
};

/// The library that this process uses.
static LIBRARY: OnceLock<Api> = OnceLock::new();

thread_local! {
    /// The runtime of this thread, while somebody has it.
    static HERE: RefCell<Weak<Runtime>> = const { RefCell::new(Weak::new()) };
}

/// The library, found as the options say; or, where they name none, the one that this process uses already.
pub(crate) fn open(options: &infer_sys::LoadOptions, names_one: bool) -> Result<Api> {
    if let Some(library) = LIBRARY.get().filter(|_| !names_one) {
        return Ok(*library);
    }
    Api::load(options)
        .map_err(|error| Error::new(ErrorKind::Library, error.to_string()).with_backend(BACKEND).with_source(error))
}

/// The runtime of this thread.
pub(crate) fn of_this_thread(library: Api) -> Result<Rc<Runtime>> {
    let ours = LIBRARY.get_or_init(|| library);
    if !ptr::eq(ours.table(), library.table()) {
        let message = format!(
            "this process uses an MLX {} ({}) already, and can use no other beside it; the one asked for is {} ({})",
            ours.version(),
            ours.variant(),
            library.version(),
            library.variant()
        );
        return Err(error(ErrorKind::Library, message));
    }
    let ended = |_| error(ErrorKind::Closed, "the thread is ending, and MLX can not be started on it any more");
    if let Some(runtime) = HERE.try_with(|here| here.borrow().upgrade()).map_err(ended)? {
        return Ok(runtime);
    }
    let runtime = Runtime::new(*ours).map_err(|Failure { kind, code, message }| {
        error(kind, format!("could not make a stream of MLX: {message}")).with_code(code)
    })?;
    let runtime = Rc::new(runtime);
    HERE.try_with(|here| here.replace(Rc::downgrade(&runtime))).map_err(ended)?;
    Ok(runtime)
}
