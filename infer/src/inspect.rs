use crate::{Backend, ModelSource, backends};
use infer_core::{
    ModelInfo, Result,
    cost::{Dims, Weights},
};
use std::path::{Path, PathBuf};

/// What a model file says of itself, read without native code and without the weights.
///
/// ```no_run
/// let file = infer::inspect("model.gguf")?;
/// println!("{}: {}, {} bytes of weights", file.format, file.info.description, file.weights.bytes());
/// # Ok::<(), infer::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// The backend that reads it.
    pub backend: Backend,
    /// The format and its version, such as `GGUF 3`.
    pub format: String,
    /// The files it lies in, with their sizes in bytes; several for a split model.
    pub files: Vec<(PathBuf, u64)>,
    /// The facts in the words that all backends share.
    pub info: ModelInfo,
    /// The weights by number format.
    pub weights: Weights,
    /// The dimensions that [`cost`](crate::cost) counts with; `None` for an architecture it does not describe.
    pub dims: Option<Dims>,
    /// The vocabulary's family and how text is cut before it is encoded, as the file names them.
    pub tokenizer: Option<String>,
    /// Everything else: names and values as text, in the order of the file. Long values are cut.
    pub metadata: Vec<(String, String)>,
}

/// Reads what a model file says of itself.
///
/// # Errors
/// [`Io`](crate::ErrorKind::Io); [`InvalidModel`](crate::ErrorKind::InvalidModel) for a file that is of no known format,
/// or damaged; [`Unsupported`](crate::ErrorKind::Unsupported) when the backend for it is not compiled in.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    let source = ModelSource::new(path.as_ref());
    backends::inspect(source.backend()?, &source)
}
