use crate::{Backend, ModelSource, backends};
use infer_core::{
    ModelInfo, Result,
    cost::{Dims, KvRows, KvType, Weights},
};
use std::{
    fmt,
    path::{Path, PathBuf},
};

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
    /// What can be done with it; `None` where that is not known, and for what is no model by itself.
    pub kind: Option<ModelKind>,
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
    /// The format of keys and values and the rows that a sequence comes to have, where the backend takes them as they are needed and has the format
    /// from the weights; `None` where a session's options choose.
    pub kv: Option<(KvType, KvRows)>,
    /// The vocabulary's family and how text is cut before it is encoded, as the file names them.
    pub tokenizer: Option<String>,
    /// Everything else: names and values as text, in the order of the file. Long values are cut.
    pub metadata: Vec<(String, String)>,
}

/// What a model does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelKind {
    /// It goes on with a text, token by token: [`Model::session`](crate::Model::session).
    Decoder,
    /// It reads a text at once, for a vector or scores: [`Model::encoder`](crate::Model::encoder).
    Encoder,
    /// It is no model of text, but a graph of named tensors.
    Graph,
}

impl ModelKind {
    /// Its name in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decoder => "decoder",
            Self::Encoder => "encoder",
            Self::Graph => "graph",
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
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
