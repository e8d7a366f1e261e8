//! ONNX Runtime's C interface.
//!
//! Unlike the other door this one is not generated here: the bindings are those of [`ort-sys`](ort_sys), kept by hand by the authors of `ort`, which
//! the runtime crate above stands on too; a second set beside them could only differ. What is added is how a library is found and what is
//! compared before anybody calls through its table.

mod loading;

use std::ffi::CStr;
use std::fmt;

pub use loading::LIBRARY_VARIABLE;
pub use ort_sys::*;

use crate::{Installed, LoadError, LoadOptions, Refusal};

/// The version of ONNX Runtime that is pinned: what `infer setup onnx` puts into the cache.
pub const VERSION: &str = env!("INFER_ONNXRUNTIME_VERSION");

/// The oldest one whose table has every entry that the bindings know: 1.[`ORT_API_VERSION`].
const OLDEST: (u32, u32) = (1, ORT_API_VERSION);

/// The checked table of an ONNX Runtime.
///
/// Having one means that the library behind it speaks the version of the table that [`OrtApi`] describes. It is as cheap as a reference. Entries are only
/// ever added at the end of that table, so that a newer library serves as well.
#[derive(Clone, Copy)]
pub struct Api {
    table: &'static OrtApi,
    version: &'static str,
}

impl Api {
    /// The table of a shared library, which is never closed again: its threads and thread-local objects do not survive being unloaded.
    ///
    /// Where it is looked for is said at [`LoadOptions`]. May be called from several threads and several times.
    ///
    /// # Errors
    ///
    /// No library was found that this crate can use: the error lists every place and what was wrong with it.
    pub fn load(options: &LoadOptions) -> Result<Self, LoadError> {
        crate::library::load(options)
    }

    /// Every library that is there, each with its table or with what is wrong with it: those that [`load`](Self::load) could find, by the same rules,
    /// whatever their variant.
    #[must_use]
    pub fn installed(options: &LoadOptions) -> Vec<Installed<Self>> {
        crate::library::installed(options)
    }

    /// The table itself.
    #[must_use]
    pub fn table(self) -> &'static OrtApi {
        self.table
    }

    /// What the library calls its version: "1.32.0".
    #[must_use]
    pub fn version(self) -> &'static str {
        self.version
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("version", &self.version).finish_non_exhaustive()
    }
}

/// What a library has to be, in words.
fn wanted() -> String {
    let (major, minor) = OLDEST;
    format!("ONNX Runtime {major}.{minor} or a later {major}.x ({VERSION} is the one that is pinned)")
}

/// Whether a library that says this of itself is one to ask for a table.
fn release(version: &str) -> Result<(), Refusal> {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if major == OLDEST.0 && minor >= OLDEST.1 => Ok(()),
        _ => Err(Refusal::Release { wanted: wanted(), found: version.to_owned() }),
    }
}

/// The two entries of [`OrtApiBase`], which may be missing in what is no ONNX Runtime.
#[repr(C)]
struct Base {
    api: Option<unsafe extern "system" fn(u32) -> *const OrtApi>,
    version: Option<unsafe extern "system" fn() -> *const c_char>,
}

/// Asks a library what it is, and for its table.
///
/// # Safety
///
/// `base` is NULL, or what `OrtGetApiBase` of a library that stays open has returned.
unsafe fn check(base: *const OrtApiBase) -> Result<Api, Refusal> {
    let base = base.cast::<Base>();
    if base.is_null() || !base.is_aligned() {
        return Err(Refusal::NoTable);
    }
    // SAFETY: not NULL, aligned, and a constant of the library, of two pointers in every version (`onnxruntime_c_api.h`), which may be NULL here.
    let base = unsafe { &*base };
    let version = base.version.ok_or(Refusal::Entry("GetVersionString"))?;
    let api = base.api.ok_or(Refusal::Entry("GetApi"))?;
    // SAFETY: the function has no precondition.
    let version = unsafe { version() };
    if version.is_null() {
        return Err(Refusal::Release { wanted: wanted(), found: String::new() });
    }
    // SAFETY: not NULL; the header says "a null terminated string" that is not to be freed, a constant of the library, which stays open.
    let version: &'static CStr = unsafe { CStr::from_ptr(version) };
    let version = version
        .to_str()
        .map_err(|_| Refusal::Release { wanted: wanted(), found: version.to_string_lossy().into_owned() })?;
    // Asked for a table that it does not have, it would say so on stderr.
    release(version)?;
    // SAFETY: the function takes any number, and returns a table that lives as long as the library, or NULL.
    let table = unsafe { api(ORT_API_VERSION) };
    if table.is_null() || !table.is_aligned() {
        return Err(Refusal::NoTable);
    }
    // SAFETY: not NULL and aligned. The library says that it has the version asked for, and a table of that version is at least this long, all of it pointers.
    let entries =
        unsafe { std::slice::from_raw_parts(table.cast::<*const ()>(), size_of::<OrtApi>() / size_of::<*const ()>()) };
    if let Some(number) = entries.iter().position(|entry| entry.is_null()) {
        return Err(Refusal::Gap(number));
    }
    // SAFETY: not NULL, aligned, of this shape by the version asked for, with every entry there; a constant that is never written.
    let table: &'static OrtApi = unsafe { &*table };
    Ok(Api { table, version })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Upstream fixes the end of each version's table so (`onnxruntime_c_api.cc`, "Size of version … API cannot change").
    #[test]
    fn the_table_has_upstreams_shape() {
        let entry = size_of::<*const ()>();
        for (offset, index) in [
            (offset_of!(OrtApi, SetEpDynamicOptions), 284),
            (offset_of!(OrtApi, GetEpApi), 317),
            (offset_of!(OrtApi, CreateExternalInitializerInfo), 389),
            (offset_of!(OrtApi, GetTensorElementTypeAndShapeDataReference), 414),
            (offset_of!(OrtApi, SetPerSessionThreadPoolCallbacks), 418),
            (offset_of!(OrtApi, SessionReleaseCapturedGraph), 421),
            (offset_of!(OrtApi, KernelContext_GetPreallocatedOutput), 425),
        ] {
            assert_eq!(offset, index * entry);
        }
        assert_eq!(size_of::<OrtApi>(), 428 * entry);
    }

    #[test]
    fn a_release_serves_from_the_oldest_of_this_major_version_on() {
        for version in ["1.31.0", "1.32.0", "1.40.1-rc.2", VERSION] {
            assert!(release(version).is_ok(), "{version}");
        }
        for version in ["1.30.9", "1.17.1", "2.31.0", "0.99.0", "1", "1.x", "", "new"] {
            let text = release(version).unwrap_err().to_string();
            assert!(
                text.contains("ONNX Runtime 1.31 or a later 1.x") && text.contains(&format!("{version:?} found")),
                "{text}"
            );
        }
    }
}
