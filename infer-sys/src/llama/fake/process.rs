//! The part of the faked door that belongs to the process: log and limits.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use super::devices::MAX_DEVICES;
use super::support::{fill_string, finish, put};
use crate::llama::bindings::{
    INFER_LLAMA_OK, ggml_log_callback, ggml_log_level, infer_llama_error, infer_llama_fatal_callback,
    infer_llama_limits,
};

pub(super) const MAX_SEQUENCES: u32 = 256;
pub(super) const MAX_THREADS: i32 = 512;

struct Logger {
    callback: ggml_log_callback,
    user_data: *mut c_void,
}

// SAFETY: whoever sets a log callback has it called from any thread with this pointer (`llama_door.h`), here as in llama.cpp.
unsafe impl Send for Logger {}

static LOGGER: Mutex<Logger> = Mutex::new(Logger { callback: None, user_data: ptr::null_mut() });

/// Hands a fragment of a log line to whoever set the log callback, on this thread, as llama.cpp would.
pub fn log(level: ggml_log_level, fragment: &CStr) {
    let (callback, user_data) = {
        let logger = LOGGER.lock().unwrap_or_else(PoisonError::into_inner);
        (logger.callback, logger.user_data)
    };
    // Not under the lock: a callback that logs must not hang.
    if let Some(callback) = callback {
        // SAFETY: `log_set` took the callback together with this pointer, for calls from any thread.
        unsafe { callback(level, fragment.as_ptr(), user_data) };
    }
}

pub(super) unsafe extern "C" fn backend_init(_error: *mut infer_llama_error) -> i32 {
    INFER_LLAMA_OK
}

pub(super) unsafe extern "C" fn log_set(callback: ggml_log_callback, user_data: *mut c_void) {
    *LOGGER.lock().unwrap_or_else(PoisonError::into_inner) = Logger { callback, user_data };
}

/// The faked door asserts nothing, so that nobody has to be told.
pub(super) unsafe extern "C" fn fatal_set(_callback: infer_llama_fatal_callback) {}

pub(super) unsafe extern "C" fn time_us() -> i64 {
    static START: OnceLock<Instant> = OnceLock::new();
    i64::try_from(START.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(i64::MAX)
}

pub(super) unsafe extern "C" fn limits(out: *mut infer_llama_limits, error: *mut infer_llama_error) -> i32 {
    let limits = infer_llama_limits {
        max_devices: MAX_DEVICES as u32,
        max_sequences: MAX_SEQUENCES,
        max_threads: MAX_THREADS.unsigned_abs(),
        supports_mmap: true,
        supports_mlock: false,
        supports_gpu_offload: true,
        supports_rpc: false,
    };
    // SAFETY: `out` is the caller's, valid for writing or NULL.
    let outcome = unsafe { put(out, limits) };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn system_info(
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
    let outcome = unsafe { fill_string(buf, cap, len, c"FAKE : RUST = 1 | ") };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
