//! GGUF files, read in plain Rust: no native code, and no weights in memory.
//!
//! [`open`] reads the header of a model, all parts of it where it was split; [`Header`] answers what `infer inspect` and
//! `infer cost` want to know. [`Header::check`] refuses what llama.cpp would end the process over, or take in silence and
//! compute nonsense with. A model is checked before native code sees the file; it need not be done by hand.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = build_support::fixtures::model("tiny-llama")?;
//! use infer_llama::gguf::{self, Purpose};
//!
//! let header = gguf::open(path)?;
//! assert_eq!(header.architecture(), Some("llama"));
//! let bytes: u64 = header.tensors().iter().map(|tensor| tensor.bytes()).sum();
//! println!("{} tensors, {bytes} bytes", header.tensors().len());
//! header.check(Purpose::Model)?; // what `Model::open` does first
//! # Ok(())
//! # }
//! ```

mod check;
mod dtype;
mod header;
mod read;
mod split;
mod value;

pub use check::Purpose;
pub use dtype::DType;
pub use header::{Header, Part, Tensor, Weights};
pub(crate) use split::{complete, refuse as refuse_split};
pub use value::{Array, Strings, Value};

use infer_core::{Error, ErrorKind, Result};
use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

/// Reads the header of the model at `path`. Of a split model `path` is the first part; the others are found beside it.
///
/// Only what makes the header readable is checked: see [`Header::check`].
///
/// # Errors
/// [`Io`](ErrorKind::Io) when a file cannot be opened or read or is no regular file;
/// [`InvalidModel`](ErrorKind::InvalidModel) when a header is no GGUF header, or cannot be true: tensors outside the file,
/// counts and sizes that overflow, fields of impossible type, parts that do not belong together.
pub fn open(path: impl AsRef<Path>) -> Result<Header> {
    let path = path.as_ref();
    let header = read(open_file(path)?, path)?;
    complete(header)
}

/// Reads the header of one file from its beginning, whatever position it is at. `name` is what errors call it.
///
/// # Errors
/// As of [`open`].
pub fn read(file: impl Read + Seek, name: impl AsRef<Path>) -> Result<Header> {
    read::read(file, name.as_ref())
}

/// Opens a regular file. Anything else is refused before it is opened: a pipe would wait for a writer.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let kind = std::fs::metadata(path).map_err(|error| read::unreadable(path, error))?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a directory" } else { "no regular file" };
        let message = format!("{} is {what}; a GGUF file is wanted", path.display());
        return Err(Error::new(ErrorKind::Io, message));
    }
    File::open(path).map_err(|error| read::unreadable(path, error))
}

fn invalid(path: &Path, message: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::InvalidModel, format!("{}: {}", path.display(), message.as_ref()))
}
