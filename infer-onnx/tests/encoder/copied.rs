//! A model's folder that may be changed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// A copy of a folder, which goes with it.
pub(crate) struct Copied(PathBuf);

impl Copied {
    pub(crate) fn of(folder: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let copy = std::env::temp_dir().join(format!("infer-onnx-encoder-{}-{number}", std::process::id()));
        copy_all(folder, &copy);
        Self(copy)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.0.join(file)).unwrap();
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &place);
        } else {
            fs::copy(&path, place).unwrap();
        }
    }
}
