//! What the parts stand on: the library, and models as files.

use infer_onnx::{LoadOptions, Onnx};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The library of the cache.
///
/// # Panics
/// When it is not there.
pub(crate) fn onnx() -> Onnx {
    Onnx::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"))
}

/// A model in a folder of its own, which is deleted when this is dropped.
pub(crate) struct ModelFile {
    folder: PathBuf,
    path: PathBuf,
}

impl ModelFile {
    /// # Panics
    /// When the system's folder for passing files cannot be written to.
    pub(crate) fn new(name: &str, model: &[u8]) -> Self {
        let folder = std::env::temp_dir().join(format!("infer-bench-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
        let file = Self { path: folder.join("model.onnx"), folder };
        file.beside("model.onnx", model);
        file
    }

    /// Writes another file into the model's folder.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub(crate) fn beside(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.join(name);
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ModelFile {
    fn drop(&mut self) {
        // Should it stay, it is where such things are cleared away.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
