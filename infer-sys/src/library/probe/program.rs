//! Where the program is that probes, and whether it may be run.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::super::{places, verified};
use crate::Refusal;

/// A program that may be run.
pub(super) struct Program {
    /// Its path, for messages and for its own eyes.
    pub(super) path: PathBuf,
    /// The file, where its bytes were checked: it is this one that is run.
    file: Option<File>,
}

impl Program {
    /// What to start.
    pub(super) fn command(&self) -> OsString {
        match &self.file {
            Some(file) => verified::path_of(file, &self.path),
            None => self.path.clone().into(),
        }
    }
}

/// The program called `name` beside `library`, else the one of the folder `cache`; or why there is none.
///
/// One with a hash beside it must have that hash. One without must be nobody else's to write, and so must its folder: the rule for libraries
/// beside a program, whoever named this library.
pub(super) fn find(name: &str, library: &Path, cache: Option<&Path>) -> Result<Program, String> {
    let mut why = Vec::new();
    for folder in library.parent().into_iter().chain(cache) {
        let path = folder.join(name);
        match open(&path) {
            Ok(file) => return Ok(Program { path, file }),
            Err(refusal) => why.push(format!("{}: {refusal}", path.display())),
        }
    }
    Err(why.join("; "))
}

fn open(path: &Path) -> Result<Option<File>, Refusal> {
    if verified::has_hash(path) {
        let checked = verified::check(path)?;
        return Ok(Some(checked.file));
    }
    places::trusted(path)?;
    Ok(None)
}
