//! ONNX files, read in plain Rust: what a model says of itself, and which other files it names. No native code, no weights in memory.
//!
//! [`open`] reads a file past its weights. A model names files that its weights are in; ONNX Runtime opens them by that name. So
//! [`Graph::open`](crate::Graph::open) reads this first and refuses names that lead out of the model's folder
//! ([`Header::check_files`]), before the runtime sees the model. It need not be done by hand.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use infer_onnx::header;
//!
//! // A model of nothing: the version of the format (8), a producer, and operators of ONNX's version 17.
//! let file = b"\x08\x08\x12\x04hand\x3a\x00\x42\x04\x0a\x00\x10\x11";
//! let header = header::read(std::io::Cursor::new(file), "hand.onnx")?;
//! assert_eq!(header.producer(), "hand");
//! assert_eq!(header.opset(""), Some(17));
//! assert!(header.files().is_empty(), "its weights are all in it");
//! # Ok(())
//! # }
//! ```

mod contents;
mod files;
mod functions;
mod parts;
mod walk;
mod weights;
mod wire;

pub use contents::{Contents, Weights, contents};
pub use files::ExternalFile;
pub(crate) use parts::{Content, Part, Parts};
pub(crate) use weights::{LEAST, Weight, weights};

use crate::error::error;
use infer_core::{Error, ErrorKind, Result};
use std::{
    fs::File,
    io::{self, Read, Seek},
    path::Path,
};

/// What an ONNX model says of itself, and which files it names.
///
/// Texts are what the file has, empty where it has none; what is not UTF-8 in them is replaced.
#[derive(Clone, Debug, Default)]
pub struct Header {
    ir_version: i64,
    producer: String,
    producer_version: String,
    domain: String,
    model_version: i64,
    description: String,
    graph_name: String,
    graph_description: String,
    opsets: Vec<(String, i64)>,
    metadata: Vec<(String, String)>,
    files: Vec<ExternalFile>,
}

/// Reads the model at `path`.
///
/// # Errors
/// [`Io`](ErrorKind::Io) when the file cannot be opened or read or is no regular file;
/// [`InvalidModel`](ErrorKind::InvalidModel) when it is no ONNX model, or ends too early, and for functions that call each other in a circle,
/// too deep or too often: ONNX Runtime writes them all out.
pub fn open(path: impl AsRef<Path>) -> Result<Header> {
    let path = path.as_ref();
    read(open_file(path)?, path)
}

/// Reads a model from its beginning, whatever position it is at. `name` is what errors call it.
///
/// # Errors
/// As of [`open`].
pub fn read(file: impl Read + Seek, name: impl AsRef<Path>) -> Result<Header> {
    walk::model(file, name.as_ref())
}

impl Header {
    /// The version of the file format.
    #[must_use]
    pub fn ir_version(&self) -> i64 {
        self.ir_version
    }

    /// The program that wrote the model: `pytorch`, ….
    #[must_use]
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// The version of that program.
    #[must_use]
    pub fn producer_version(&self) -> &str {
        &self.producer_version
    }

    /// Whose model it is, as a domain name written backwards.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The model's own version.
    #[must_use]
    pub fn model_version(&self) -> i64 {
        self.model_version
    }

    /// What the model is, in words.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What the graph is called.
    #[must_use]
    pub fn graph_name(&self) -> &str {
        &self.graph_name
    }

    /// What the graph is, in words.
    #[must_use]
    pub fn graph_description(&self) -> &str {
        &self.graph_description
    }

    /// The sets of operators the model uses, by domain, each with its version. ONNX's own have the domain `""`.
    #[must_use]
    pub fn opsets(&self) -> &[(String, i64)] {
        &self.opsets
    }

    /// The version of the operators of a domain. ONNX's own are `""` or `ai.onnx`.
    #[must_use]
    pub fn opset(&self, domain: &str) -> Option<i64> {
        let own = |domain: &str| matches!(domain, "" | "ai.onnx");
        let same = |name: &str| name == domain || (own(name) && own(domain));
        self.opsets.iter().find(|(name, _)| same(name)).map(|(_, version)| *version)
    }

    /// What else the producer wrote down, in the file's order.
    #[must_use]
    pub fn metadata(&self) -> &[(String, String)] {
        &self.metadata
    }

    /// The value that the producer wrote down under this key; the last one, should there be several.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.metadata.iter().rfind(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The other files that the model has weights in, each name once.
    #[must_use]
    pub fn files(&self) -> &[ExternalFile] {
        &self.files
    }

    /// Looks at where the files are that the model names, which is beside `path`, the model's own.
    ///
    /// # Errors
    /// [`InvalidModel`](ErrorKind::InvalidModel) for a file that is not there or shorter than the model says, and for one that is not in the
    /// model's folder: a path that begins at the root, that climbs out with `..`, or that a symbolic link leads out. Where the model itself is a
    /// symbolic link (as in the cache of the Hugging Face hub), files may also be where it leads.
    pub fn check_files(&self, path: impl AsRef<Path>) -> Result<()> {
        files::check(&self.files, path.as_ref())
    }
}

/// Opens a regular file. Anything else is refused before it is opened: a pipe would wait for a writer.
pub(crate) fn open_file(path: &Path) -> Result<File> {
    let kind = std::fs::metadata(path).map_err(|why| unreadable(path, why))?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a directory" } else { "no regular file" };
        return Err(error(ErrorKind::Io, format!("{} is {what}; an ONNX file is wanted", path.display())));
    }
    File::open(path).map_err(|why| unreadable(path, why))
}

fn unreadable(path: &Path, why: io::Error) -> Error {
    error(ErrorKind::Io, format!("{} cannot be read: {why}", path.display())).with_source(why)
}

fn invalid(path: &Path, message: impl AsRef<str>) -> Error {
    error(ErrorKind::InvalidModel, format!("{}: {}", path.display(), message.as_ref()))
}
