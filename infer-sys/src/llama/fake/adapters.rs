//! Faked adapters: they change every hash from here on, and nothing else.

use std::ffi::{CStr, CString, c_char};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::context::context;
use super::control::Shared;
use super::model::{Model, model};
use super::passes::mix;
use super::support::{Failure, Outcome, array, fill_string, finish, get, put, string};
use crate::llama::bindings::{infer_llama_error, llama_adapter_lora, llama_context, llama_model};

/// What a `llama_adapter_lora` is here.
struct Adapter {
    shared: Arc<Shared>,
    model_users: Arc<AtomicUsize>,
    /// Its path, or where there is none, what is in it: adapters that differ in it change hashes differently.
    path: CString,
}

/// # Safety
///
/// `pointer` is NULL or an adapter of this table that is not yet freed.
unsafe fn adapter<'a>(pointer: *const llama_adapter_lora) -> Outcome<&'a Adapter> {
    // SAFETY: `adapter_load` made the pointer from an `Adapter`, which is never written.
    unsafe { get(pointer.cast::<Adapter>(), "adapter") }
}

pub(super) unsafe extern "C" fn adapter_load(
    pointer: *mut llama_model,
    path: *const c_char,
    out: *mut *mut llama_adapter_lora,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|model| {
        // SAFETY: the path is the caller's, a string or NULL.
        let path = unsafe { string(path, "path") }?.to_owned();
        // SAFETY: `out` is the caller's.
        unsafe { load(model, path, out) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn adapter_load_from_fd(
    pointer: *mut llama_model,
    fd: i32,
    out: *mut *mut llama_adapter_lora,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|model| {
        // SAFETY: the caller passes a descriptor that stays open for the call.
        let content = unsafe { content(fd) }?;
        // SAFETY: `out` is the caller's.
        unsafe { load(model, content, out) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// What the file holds from its start, as a word.
///
/// # Safety
///
/// `fd` is a descriptor that is open.
#[cfg(unix)]
unsafe fn content(fd: i32) -> Outcome<CString> {
    use std::{
        fs::File,
        io::{Read, Seek},
        os::fd::BorrowedFd,
    };
    // SAFETY: the caller vouches for it.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    let read = || {
        let (mut file, mut bytes) = (File::from(file.try_clone_to_owned()?), Vec::new());
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: std::io::Error| Failure::failed(error.to_string()))?;
    let hash = bytes.iter().fold(0, |hash, &byte| mix(hash ^ u64::from(byte)));
    Ok(CString::new(format!("{hash:016x}")).expect("digits have no NUL"))
}

#[cfg(not(unix))]
unsafe fn content(_: i32) -> Outcome<CString> {
    Err(Failure::unsupported("the faked door reads no descriptors here"))
}

/// # Safety
///
/// `out` is NULL or valid for writing.
unsafe fn load(model: &Model, path: CString, out: *mut *mut llama_adapter_lora) -> Outcome {
    if out.is_null() {
        return Err(Failure::argument("out is NULL"));
    }
    model.users.fetch_add(1, Ordering::AcqRel);
    model.shared.live.adapters.fetch_add(1, Ordering::AcqRel);
    let adapter = Box::new(Adapter { shared: Arc::clone(&model.shared), model_users: Arc::clone(&model.users), path });
    // SAFETY: `out` is not NULL, and the caller vouches for the rest.
    unsafe { put(out, Box::into_raw(adapter).cast()) }
}

pub(super) unsafe extern "C" fn adapter_free(pointer: *mut llama_adapter_lora) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: `adapter_load` made the pointer from a box, and the caller frees it once.
    let adapter = unsafe { Box::from_raw(pointer.cast::<Adapter>()) };
    adapter.model_users.fetch_sub(1, Ordering::AcqRel);
    adapter.shared.live.adapters.fetch_sub(1, Ordering::AcqRel);
}

pub(super) unsafe extern "C" fn adapter_meta_count(_adapter: *const llama_adapter_lora) -> i32 {
    1
}

/// # Safety
///
/// `pointer` is NULL or an adapter of this table that is not yet freed.
unsafe fn meta<'a>(pointer: *const llama_adapter_lora, index: i32) -> Outcome<(&'a CStr, &'a CStr)> {
    // SAFETY: the caller vouches for it.
    let adapter = unsafe { adapter(pointer) }?;
    if index == 0 {
        Ok((c"fake.path", adapter.path.as_c_str()))
    } else {
        Err(Failure::failed("no metadata of that index"))
    }
}

pub(super) unsafe extern "C" fn adapter_meta_key(
    pointer: *const llama_adapter_lora,
    index: i32,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes an adapter of this table.
    let outcome = unsafe { meta(pointer, index) }.and_then(|(key, _)| {
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill_string(buf, cap, len, key) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn adapter_meta_val(
    pointer: *const llama_adapter_lora,
    index: i32,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes an adapter of this table.
    let outcome = unsafe { meta(pointer, index) }.and_then(|(_, value)| {
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill_string(buf, cap, len, value) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn adapters_set(
    pointer: *mut llama_context,
    adapters: *const *mut llama_adapter_lora,
    scales: *const f32,
    n: usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the context and the arrays are the caller's, `n` long.
    let outcome = unsafe { set(pointer, adapters, scales, n) };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// # Safety
///
/// `pointer` is NULL or a context that nobody else uses; the arrays have `n` elements, the adapters are of this table and not yet freed.
unsafe fn set(
    pointer: *mut llama_context,
    adapters: *const *mut llama_adapter_lora,
    scales: *const f32,
    n: usize,
) -> Outcome {
    // SAFETY: the caller vouches for it.
    let context = unsafe { context(pointer) }?;
    // SAFETY: the caller vouches for it.
    let adapters = unsafe { array(adapters, n, "adapters") }?;
    // SAFETY: the caller vouches for it.
    let scales = unsafe { array(scales, n, "scales") }?;
    let mut salt = 0;
    for (pointer, scale) in adapters.iter().zip(scales) {
        // SAFETY: the caller vouches for it.
        let adapter = unsafe { adapter(*pointer) }?;
        for byte in adapter.path.as_bytes() {
            salt = mix(salt ^ u64::from(*byte));
        }
        salt = mix(salt ^ u64::from(scale.to_bits()));
    }
    context.salt = salt;
    Ok(())
}
