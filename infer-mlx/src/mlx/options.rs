//! What can be chosen when the library is loaded.

use std::path::PathBuf;

/// Where the shared library is looked for.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    sys: infer_sys::LoadOptions,
    /// Whether they say which library it is to be.
    names_one: bool,
}

impl LoadOptions {
    /// First the file that the environment variable `INFER_MLX_LIBRARY` names, then the cache that `infer setup mlx` fills, then
    /// beside the program. Never the current folder; and with raised privileges only a path given in code.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// This file and no other. The path must be absolute.
    #[must_use]
    pub fn with_path(self, path: impl Into<PathBuf>) -> Self {
        Self { sys: self.sys.with_path(path), names_one: true }
    }

    /// Only a library that was built as this variant: `cpu`, ….
    #[must_use]
    pub fn with_variant(self, variant: impl Into<String>) -> Self {
        Self { sys: self.sys.with_variant(variant), names_one: true }
    }

    /// This folder as the cache. The path must be absolute.
    #[must_use]
    pub fn with_cache(self, folder: impl Into<PathBuf>) -> Self {
        Self { sys: self.sys.with_cache(folder), names_one: true }
    }

    pub(crate) fn as_sys(&self) -> &infer_sys::LoadOptions {
        &self.sys
    }

    pub(crate) fn names_one(&self) -> bool {
        self.names_one
    }
}
