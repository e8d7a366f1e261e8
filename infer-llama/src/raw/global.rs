//! What a process has once: the backends' start, and the log.

use super::{Door, call};
use crate::log::{self, Fragment, Level};
use infer_core::Result;
use infer_sys::llama::{
    Api,
    bindings::{
        GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_DEBUG, GGML_LOG_LEVEL_ERROR, GGML_LOG_LEVEL_WARN, ggml_log_level,
        infer_llama_table,
    },
};
use std::{
    ffi::{CStr, c_char, c_void},
    io::Write,
    ptr,
    sync::{Mutex, PoisonError},
};

/// The tables that were started. A program has one; tests have some more.
static STARTED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Starts a library, the first time its table comes by: log hook first, so that nothing goes to stderr, then the backends.
pub(super) fn start(api: Api) -> Result<Door> {
    // A panic while it was held (there is none to be expected) left the list as it was.
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    let table = ptr::from_ref::<infer_llama_table>(api.table()).addr();
    if !started.contains(&table) {
        // SAFETY: nothing of this crate is inside an entry of this table, since a `Door` is needed for that and this is the
        // only place that makes one, under the lock. The callback returns normally and takes no user data.
        unsafe { api.log_set(Some(on_log), ptr::null_mut()) };
        // SAFETY: as above; the callback is called right before the process ends.
        unsafe { api.fatal_set(Some(on_fatal)) };
        // SAFETY: once for each table, under the lock, before any other entry but those two.
        call("start the backends", |error| unsafe { api.backend_init(error) })?;
        started.push(table);
    }
    Door::new(api)
}

/// Called by llama.cpp for each fragment of a line, from any thread.
unsafe extern "C" fn on_log(level: ggml_log_level, text: *const c_char, _: *mut c_void) {
    if text.is_null() {
        return;
    }
    // SAFETY: not NULL; ggml passes a C string that it does not change during the call.
    let text = unsafe { CStr::from_ptr(text) };
    let fragment = match level {
        GGML_LOG_LEVEL_DEBUG => Fragment::Begin(Level::Debug),
        GGML_LOG_LEVEL_WARN => Fragment::Begin(Level::Warn),
        GGML_LOG_LEVEL_ERROR => Fragment::Begin(Level::Error),
        GGML_LOG_LEVEL_CONT => Fragment::Continued,
        _ => Fragment::Begin(Level::Info),
    };
    log::take(fragment, &text.to_string_lossy());
}

/// Called with the reason when an assertion of ggml fails. The process ends afterwards, so it goes to stderr as well.
unsafe extern "C" fn on_fatal(message: *const c_char) {
    // SAFETY: the door passes a C string or NULL.
    let message = unsafe { super::text(message) };
    log::take(Fragment::Begin(Level::Error), &format!("{message}\n"));
    // The process is about to end: there is nobody to tell that stderr is closed.
    drop(writeln!(std::io::stderr(), "llama.cpp: {message}"));
}
