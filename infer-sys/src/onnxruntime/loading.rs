//! ONNX Runtime in a shared library.

use std::path::{Path, PathBuf};

use libloading::Library;

use super::{Api, ORT_API_VERSION, OrtApiBase, VERSION, check, release, wanted};
use crate::Refusal;
use crate::library::{Facts, Runtime, in_full};

/// Names the library with ONNX Runtime to load, and no other is looked for. Ignored when the process runs with raised privileges.
pub const LIBRARY_VARIABLE: &str = "INFER_ONNXRUNTIME_LIBRARY";

/// The version of the table, as the program that tries a library is told it.
const API: &str = "31";
const _: () = assert!(ORT_API_VERSION == 31, "the text and the number are one");

impl Runtime for Api {
    const VARIABLE: &'static str = LIBRARY_VARIABLE;
    const VARIABLE_PLACE: &'static str = "the environment variable INFER_ONNXRUNTIME_LIBRARY";
    const FILE_NAMES: &'static [&'static str] = if cfg!(windows) {
        &["onnxruntime.dll"]
    } else if cfg!(target_vendor = "apple") {
        &[concat!("libonnxruntime.", env!("INFER_ONNXRUNTIME_VERSION"), ".dylib"), "libonnxruntime.dylib"]
    } else {
        &[concat!("libonnxruntime.so.", env!("INFER_ONNXRUNTIME_VERSION")), "libonnxruntime.so"]
    };
    const PROBE: &'static str = "infer-onnxruntime-probe";
    const PROBE_ARGUMENTS: &'static [&'static str] = &[API];
    const HINT: &'static str = "three ways to provide one:
  - `infer setup onnx` fetches it into the cache, also in place of one that is damaged
  - name one yourself by its absolute path: in INFER_ONNXRUNTIME_LIBRARY, or in code (LoadOptions::with_path)
  - put it beside the program, or into ../lib
  the working directory and the system's own search are never looked in";

    fn wanted(variant: Option<&str>) -> String {
        let variant = variant.map(|variant| format!(", variant {variant}")).unwrap_or_default();
        format!("{}{variant}", wanted())
    }

    fn folder(cache: &Path) -> PathBuf {
        cache.join("onnxruntime").join(VERSION)
    }

    fn setup(_variant: &str) -> String {
        "infer setup onnx".to_owned()
    }

    fn judge(facts: &Facts<'_>) -> Result<(), Refusal> {
        release(facts.find("release").unwrap_or_default())?;
        facts.find("table").map(drop).ok_or(Refusal::NoTable)
    }

    /// Its variant is the name of a folder: the library itself does not say how it was built.
    fn of(library: &Library, _variant: Option<&str>) -> Result<Self, Refusal> {
        type Base = unsafe extern "system" fn() -> *const OrtApiBase;
        // SAFETY: the one symbol that every version exports for this has this type; a library that gives the name another meaning is not told
        // apart, here as with any dynamic linking.
        let base =
            unsafe { library.get::<Base>(b"OrtGetApiBase\0") }.map_err(|error| Refusal::NoSymbol(in_full(&error)))?;
        // SAFETY: the function has no precondition, and returns a constant of the library, or NULL.
        let base = unsafe { base() };
        // SAFETY: as above; the caller keeps the library open when there is a door.
        unsafe { check(base) }
    }
}
