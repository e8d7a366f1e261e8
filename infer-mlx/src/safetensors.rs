//! Safetensors files, read in plain Rust: which tensors a file has, and where. No native code, no weights in memory.
//!
//! A file is the length of its header in eight bytes (little-endian), the header in JSON, and the tensors' bytes one behind the other,
//! without a hole (<https://huggingface.co/docs/safetensors>). [`open`] takes none of it on trust; what it returns lies inside the file. It
//! need not be done by hand: [`Package::read`](crate::Package::read) does it for each file of a model.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use infer_mlx::safetensors;
//!
//! let header = br#"{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}"#;
//! let file = [&(header.len() as u64).to_le_bytes()[..], header, &[0; 8]].concat();
//! let header = safetensors::read(std::io::Cursor::new(file), "w.safetensors")?;
//! assert_eq!((header.tensors()[0].name(), header.tensors()[0].shape()), ("w", &[2][..]));
//! # Ok(())
//! # }
//! ```
//!
//! Tensors may begin at any byte: MLX itself writes them so, and each is read into memory of its own.

mod parse;

use crate::{DType, error::error};
use infer_core::{Error, ErrorKind, Result};
use std::{
    fs::File,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
};

/// What a file of weights says of itself.
#[derive(Clone, Debug)]
pub struct Header {
    path: PathBuf,
    bytes: u64,
    tensors: Vec<Tensor>,
    metadata: Vec<(String, String)>,
}

/// A tensor as the header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    offset: u64,
    bytes: u64,
}

/// Reads the header of the file at `path`.
///
/// # Errors
/// [`Io`](ErrorKind::Io) when it cannot be opened or read or is no regular file; [`InvalidModel`](ErrorKind::InvalidModel) when it is no
/// safetensors file, ends too early, or describes what cannot be: tensors outside the file, over each other, with bytes between them, of a size
/// that is not their shape's, or two of one name; [`Unsupported`](ErrorKind::Unsupported) for numbers of a type that MLX does not have.
pub fn open(path: impl AsRef<Path>) -> Result<Header> {
    let path = path.as_ref();
    read(open_file(path)?, path)
}

/// Reads a header from the beginning of a file, whatever position it is at. `name` is what errors call it.
///
/// # Errors
/// As of [`open`].
pub fn read(file: impl Read + Seek, name: impl AsRef<Path>) -> Result<Header> {
    parse::header(file, name.as_ref())
}

impl Header {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All tensors, in the order in which they lie.
    #[must_use]
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// What else was written down (`__metadata__`), in the file's order.
    #[must_use]
    pub fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }
}

impl Tensor {
    /// Its name, such as `model.layers.0.mlp.up_proj.weight`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its numbers.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Its sizes, the one that is contiguous in memory last.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// How many numbers it has.
    #[must_use]
    pub fn elements(&self) -> u64 {
        // The product was counted when the header was read.
        self.shape.iter().map(|&size| size as u64).product()
    }

    /// Where it begins, in bytes from the beginning of the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Opens a regular file. Anything else is refused before it is opened: a pipe would wait for a writer.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let kind = std::fs::metadata(path).map_err(|why| unreadable(path, why))?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a directory" } else { "no regular file" };
        return Err(error(ErrorKind::Io, format!("{} is {what}; a safetensors file is wanted", path.display())));
    }
    File::open(path).map_err(|why| unreadable(path, why))
}

pub(crate) fn unreadable(path: &Path, why: io::Error) -> Error {
    error(ErrorKind::Io, format!("{} cannot be read: {why}", path.display())).with_source(why)
}
