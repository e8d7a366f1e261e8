//! The files that a model names: which may be opened.

use super::invalid;
use infer_core::Result;
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// A file that a model has weights in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFile {
    pub(super) location: String,
    pub(super) tensor: String,
    /// Bytes up to the end of the tensor that ends last.
    pub(super) end: u64,
}

impl ExternalFile {
    /// Where it is, as the model writes it: a path beside the model.
    #[must_use]
    pub fn location(&self) -> &str {
        &self.location
    }

    /// The first tensor that lies there.
    #[must_use]
    pub fn tensor(&self) -> &str {
        &self.tensor
    }

    /// Bytes the file must have, by what the model says of its tensors.
    #[must_use]
    pub fn min_len(&self) -> u64 {
        self.end
    }
}

/// Looks at where each file is. `model` is the path of the model.
pub(super) fn check(files: &[ExternalFile], model: &Path) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let folders = folders(model)?;
    files.iter().try_for_each(|file| check_one(file, model, &folders))
}

/// The folders that files may be in: the one of the model's path, then those of the files that it leads to.
fn folders(model: &Path) -> Result<Vec<PathBuf>> {
    let unknown = |why| super::unreadable(model, why);
    let beside = fs::canonicalize(folder_of(model)).map_err(unknown)?;
    let itself = fs::canonicalize(model).map_err(unknown)?;
    Ok(vec![beside, folder_of(&itself).to_owned()])
}

/// The folder of a file: of one that is named alone, the current one.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn check_one(file: &ExternalFile, model: &Path, folders: &[PathBuf]) -> Result<()> {
    let location = &file.location;
    let of = format!("the weights of tensor {:?}", file.tensor);
    if !stays_inside(location) {
        let message =
            format!("{of} are said to be in {location:?}, which is not a place in the model's folder: refused");
        return Err(invalid(model, message));
    }
    let path = folder_of(model).join(location);
    let is = fs::canonicalize(&path).and_then(|target| Ok((fs::metadata(&target)?, target)));
    let (metadata, target) = is.map_err(|why| {
        let message = format!("{of} are in {location:?}, and there is no such file beside the model: {why}");
        invalid(model, message).with_source(why)
    })?;
    if !folders.iter().any(|folder| target.starts_with(folder)) {
        let message = format!(
            "{of} are said to be in {location:?}, and that leads out of the model's folder, to {}: refused",
            target.display()
        );
        return Err(invalid(model, message));
    }
    if !metadata.is_file() {
        return Err(invalid(model, format!("{of} are said to be in {location:?}, which is no regular file")));
    }
    if metadata.len() < file.end {
        let (is, end) = (metadata.len(), file.end);
        let message = format!(
            "{location:?} has {is} bytes, but the model has tensors in it up to byte {end}: it is damaged, or of another model"
        );
        return Err(invalid(model, message));
    }
    Ok(())
}

/// Whether a path, as it is written, is one below a folder.
fn stays_inside(location: &str) -> bool {
    // ONNX Runtime writes addresses of memory in the place of a path, marked so.
    if location.is_empty() || location.contains('\0') || location.contains("_ORT_MEM_ADDR_") {
        return false;
    }
    let mut depth = 0_usize;
    for component in Path::new(location).components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_climb_out_are_seen_in_their_text() {
        for inside in ["w.bin", "./w.bin", "a/b/w.bin", "a/../w.bin", "a/..b/w"] {
            assert!(stays_inside(inside), "{inside}");
        }
        for outside in ["", ".", "/etc/passwd", "../w.bin", "a/../../w.bin", "a/..", "w\0.bin", "*/_ORT_MEM_ADDR_/*"] {
            assert!(!stays_inside(outside), "{outside}");
        }
    }
}
