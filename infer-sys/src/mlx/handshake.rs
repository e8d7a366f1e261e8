//! What is compared before anybody calls through a table.

use std::ffi::{CStr, c_char};
use std::mem::size_of;

use super::bindings::{
    INFER_MLX_DOOR_VERSION, infer_mlx_array_info, infer_mlx_device, infer_mlx_live, infer_mlx_memory, infer_mlx_table,
};
use super::{Api, VERSION, calls};
use crate::Refusal;

/// What a door has to be, in words.
pub(crate) fn wanted(variant: Option<&str>) -> String {
    let variant = variant.map(|variant| format!(", variant {variant}")).unwrap_or_default();
    format!("MLX {VERSION}, door version {INFER_MLX_DOOR_VERSION}{variant}")
}

/// Opens the table and compares it with what this crate was made for.
///
/// `open` is `infer_mlx_api`, or stands for it: NULL for a version it does not speak, whatever table it has for version 0.
pub(crate) fn check(open: impl Fn(u32) -> *const infer_mlx_table, variant: Option<&str>) -> Result<Api, Refusal> {
    let mut table = open(INFER_MLX_DOOR_VERSION);
    if table.is_null() {
        table = open(0);
    }
    if table.is_null() || !table.is_aligned() {
        return Err(Refusal::NoTable);
    }
    // The table may be shorter than ours, so that nothing but its first two numbers is read before they are known.
    // SAFETY: every door's table begins with its size, whatever its version (`mlx_door.h`: "this prefix never changes its shape").
    let size = unsafe { (*table).size };
    // SAFETY: as above, for the second number.
    let found = unsafe { (*table).version };
    shape(found, size)?;
    // SAFETY: it is aligned, has the size and the version of the type, lives for ever, and is never written again.
    let table: &'static infer_mlx_table = unsafe { &*table };

    // What it was compiled against; and what it found when it was loaded, which is another library where the process had one of that name.
    for found in [text(table.mlx_pinned), text(table.mlx_version)] {
        if found != VERSION {
            return Err(Refusal::Release { wanted: wanted(None), found });
        }
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
    if version != INFER_MLX_DOOR_VERSION {
        return Err(Refusal::Version { wanted: INFER_MLX_DOOR_VERSION, found: version });
    }
    let known = size_u32::<infer_mlx_table>();
    if size != known {
        return Err(Refusal::TableSize { wanted: known, found: size });
    }
    Ok(())
}

/// Name, our size and the door's size of every struct that crosses.
fn struct_sizes(table: &infer_mlx_table) -> [(&'static str, u32, u32); 4] {
    [
        ("infer_mlx_device", size_u32::<infer_mlx_device>(), table.sizeof_device),
        ("infer_mlx_array_info", size_u32::<infer_mlx_array_info>(), table.sizeof_array_info),
        ("infer_mlx_memory", size_u32::<infer_mlx_memory>(), table.sizeof_memory),
        ("infer_mlx_live", size_u32::<infer_mlx_live>(), table.sizeof_live),
    ]
}

const fn size_u32<T>() -> u32 {
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
