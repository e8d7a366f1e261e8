//! What the tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod child;
pub(crate) mod model;

use infer_onnx::{Graph, GraphOptions, LoadOptions, Onnx};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// The library.
pub(crate) fn onnx() -> Onnx {
    Onnx::load(&LoadOptions::new()).unwrap()
}

/// A model, loaded with one thread.
#[track_caller]
pub(crate) fn load(model: &[u8]) -> Graph {
    Graph::from_bytes(&onnx(), model, &GraphOptions::new().with_threads(1)).unwrap()
}

/// A folder that is removed with its contents when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("infer-onnx-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in it, in a folder that is made if it is not there.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
