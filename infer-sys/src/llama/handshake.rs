//! What is compared before anybody calls through a table.

use std::ffi::{CStr, c_char};
use std::mem::size_of;

use super::bindings::{
    INFER_LLAMA_DOOR_VERSION, infer_llama_context_info, infer_llama_device, infer_llama_error, infer_llama_limits,
    infer_llama_memory, infer_llama_model_info, infer_llama_table, infer_llama_token_info, infer_llama_vocab_info,
    llama_batch, llama_context_params, llama_model_kv_override, llama_model_params,
};
use super::{Api, COMMIT, calls};
use crate::Refusal;

/// What a door has to be, in words.
pub(crate) fn wanted(variant: Option<&str>) -> String {
    let variant = variant.map(|variant| format!(", variant {variant}")).unwrap_or_default();
    format!("llama.cpp of commit {COMMIT}, door version {INFER_LLAMA_DOOR_VERSION}{variant}")
}

/// Opens the table and compares it with what this crate was made for.
///
/// `open` is `infer_llama_api`, or stands for it: NULL for a version it does not speak, whatever table it has for version 0.
pub(crate) fn check(open: impl Fn(u32) -> *const infer_llama_table, variant: Option<&str>) -> Result<Api, Refusal> {
    let version = INFER_LLAMA_DOOR_VERSION;
    let mut table = open(version);
    if table.is_null() {
        table = open(0);
    }
    if table.is_null() || !table.is_aligned() {
        return Err(Refusal::NoTable);
    }
    // The table may be shorter than ours, so that nothing but its first two numbers is read before they are known.
    // SAFETY: every door's table begins with its size, whatever its version (`llama_door.h`: "this prefix never changes its shape").
    let size = unsafe { (*table).size };
    // SAFETY: as above, for the second number.
    let found = unsafe { (*table).version };
    shape(found, size)?;
    // SAFETY: it is aligned, has the size and the version of the type, lives for ever, and is never written again.
    let table: &'static infer_llama_table = unsafe { &*table };

    let commit = text(table.commit);
    if commit != COMMIT {
        return Err(Refusal::Commit { wanted: COMMIT.to_owned(), found: commit });
    }
    if let Some(wanted) = variant {
        let found = text(table.variant);
        if found != wanted {
            return Err(Refusal::Variant { wanted: wanted.to_owned(), found });
        }
    }
    for (name, wanted, found) in struct_sizes(table) {
        if wanted != found {
            return Err(Refusal::StructSize { name, wanted, found });
        }
    }
    if let Some(name) = calls::first_missing(table) {
        return Err(Refusal::Entry(name));
    }
    Ok(Api { table })
}

/// Compares the first two numbers of a table: what may be known of it before anything else is.
pub(crate) fn shape(version: u32, size: u32) -> Result<(), Refusal> {
    if version != INFER_LLAMA_DOOR_VERSION {
        return Err(Refusal::Version { wanted: INFER_LLAMA_DOOR_VERSION, found: version });
    }
    let known = size_u32::<infer_llama_table>();
    if size != known {
        return Err(Refusal::TableSize { wanted: known, found: size });
    }
    Ok(())
}

/// Name, our size and the door's size of every struct that crosses.
fn struct_sizes(table: &infer_llama_table) -> [(&'static str, u32, u32); 12] {
    [
        ("infer_llama_error", size_u32::<infer_llama_error>(), table.sizeof_error),
        ("llama_model_params", size_u32::<llama_model_params>(), table.sizeof_model_params),
        ("llama_context_params", size_u32::<llama_context_params>(), table.sizeof_context_params),
        ("llama_batch", size_u32::<llama_batch>(), table.sizeof_batch),
        ("llama_model_kv_override", size_u32::<llama_model_kv_override>(), table.sizeof_kv_override),
        ("infer_llama_limits", size_u32::<infer_llama_limits>(), table.sizeof_limits),
        ("infer_llama_device", size_u32::<infer_llama_device>(), table.sizeof_device),
        ("infer_llama_model_info", size_u32::<infer_llama_model_info>(), table.sizeof_model_info),
        ("infer_llama_vocab_info", size_u32::<infer_llama_vocab_info>(), table.sizeof_vocab_info),
        ("infer_llama_token_info", size_u32::<infer_llama_token_info>(), table.sizeof_token_info),
        ("infer_llama_context_info", size_u32::<infer_llama_context_info>(), table.sizeof_context_info),
        ("infer_llama_memory", size_u32::<infer_llama_memory>(), table.sizeof_memory),
    ]
}

pub(super) const fn size_u32<T>() -> u32 {
    let size = size_of::<T>();
    assert!(size <= u32::MAX as usize);
    size as u32
}

fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: not NULL, and a string of the prefix is a NUL-terminated constant.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_string_lossy().into_owned()
}
