//! MLX in a shared library.

use std::path::{Path, PathBuf};

use libloading::Library;

use super::bindings::infer_mlx_table;
use super::{Api, VERSION};
use crate::Refusal;
use crate::door::{self, Table};
use crate::library::{Facts, Runtime, in_full};

/// Names the library with MLX to load, and no other is looked for. Ignored when the process runs with raised privileges.
pub const LIBRARY_VARIABLE: &str = "INFER_MLX_LIBRARY";

impl Runtime for Api {
    const VARIABLE: &'static str = LIBRARY_VARIABLE;
    const VARIABLE_PLACE: &'static str = "the environment variable INFER_MLX_LIBRARY";
    const FILE_NAMES: &'static [&'static str] =
        if cfg!(target_vendor = "apple") { &["libinfer_mlx.dylib"] } else { &["libinfer_mlx.so"] };
    const PROBE: &'static str = "infer-mlx-probe";
    const HINT: &'static str = "three ways to provide one:
  - `infer setup mlx` builds it into the cache, also in place of one that is old or damaged: the one for processors (cpu), which is the
    only one it makes
  - name one yourself by its absolute path: in INFER_MLX_LIBRARY, or in code (`--library`, LoadOptions::with_path)
  - put it beside the program, or into ../lib, with the libraries that it was built with
  the working directory and the system's own search are never looked in";

    fn wanted(variant: Option<&str>) -> String {
        infer_mlx_table::wanted(variant)
    }

    fn folder(cache: &Path) -> PathBuf {
        cache.join("mlx").join(VERSION)
    }

    fn setup(_variant: &str) -> String {
        "infer setup mlx".to_owned()
    }

    fn judge(facts: &Facts<'_>) -> Result<(), Refusal> {
        let number = |word| facts.find(word).and_then(|text| text.parse().ok());
        match (number("version"), number("size")) {
            (Some(version), Some(size)) => door::shape::<infer_mlx_table>(version, size),
            _ => Err(Refusal::NoTable),
        }
    }

    fn of(library: &Library, variant: Option<&str>) -> Result<Self, Refusal> {
        type Open = unsafe extern "C" fn(u32) -> *const infer_mlx_table;
        // SAFETY: the one symbol of a door has this type in every version; a library that gives the name another meaning is not told apart,
        // here as with any dynamic linking.
        let open =
            unsafe { library.get::<Open>(b"infer_mlx_api\0") }.map_err(|error| Refusal::NoSymbol(in_full(&error)))?;
        // SAFETY: the function takes any number and only returns a pointer to a static table, or NULL.
        door::check(|version| unsafe { open(version) }, variant).map(|table| Self { table })
    }
}
