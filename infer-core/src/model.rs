use crate::{Encoder, EncoderOptions, Error, Result, Session, Tokenizer};
use std::{fmt, path::PathBuf, sync::Arc};

/// What a model file says of itself. Plain data, the same for every backend; a number that the file does not state is 0.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ModelInfo {
    /// The architecture by the name the file gives it, such as `llama`.
    pub architecture: String,
    /// The model's own name, if it has one.
    pub name: Option<String>,
    /// One line for people: architecture, size, quantisation.
    pub description: String,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// The context it was trained for, in tokens.
    pub context: usize,
    /// Layers that repeat: `block_count` or `num_hidden_layers` in files.
    pub layers: usize,
    /// Width of the hidden state.
    pub width: usize,
    /// Attention heads.
    pub heads: usize,
    /// Key/value heads; fewer than [`heads`](Self::heads) in grouped-query attention.
    pub kv_heads: usize,
    /// How many numbers its weights are.
    pub parameters: u64,
    /// Bytes of all weights.
    pub bytes: u64,
    /// The chat template (Jinja) that comes with the model.
    pub chat_template: Option<String>,
}

/// How a session is made.
///
/// Whatever is left out takes the model's or the machine's own value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// Positions a sequence can have; `None` or 0 is what the model was trained for.
    pub context: Option<usize>,
    /// Sequences that can be open at once.
    pub sequences: usize,
    /// Tokens one batch can hold; `None` is the backend's default.
    pub batch: Option<usize>,
    /// Threads a pass uses; `None` is as many as this process may run on, the cgroup's quota respected. A backend may use
    /// fewer than asked for where they could not run at once, and then logs a warning.
    pub threads: Option<usize>,
    /// How the cells of several sequences lie; `None` is the backend's default.
    pub layout: Option<KvLayout>,
    /// Cells in all, where sequences share one pool ([`KvLayout::Unified`]); `None` is the context for every sequence.
    pub cells: Option<usize>,
    /// Adapters (LoRA) that sequences can be [opened](crate::OpenOptions::adapter) with.
    pub adapters: Vec<AdapterSource>,
}

/// How the cells of several sequences lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum KvLayout {
    /// Each sequence has its own, for a whole context. Attention of one sequence does not look at the cells of another, so many
    /// unlike sequences run faster; a fork copies.
    Split,
    /// All sequences share one pool. A fork shares its prefix and takes microseconds; a pass that finds no room is
    /// [`OutOfCells`](crate::ErrorKind::OutOfCells).
    Unified,
}

impl KvLayout {
    /// Its name in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Unified => "unified",
        }
    }
}

impl fmt::Display for KvLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An adapter (LoRA) in a file: small changes to a model's weights, applied while it computes.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AdapterSource {
    /// What sequences call it.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// How strongly it counts: 1 is as it was trained.
    pub scale: f32,
}

impl AdapterSource {
    /// The adapter in this file, as strong as it was trained.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: name.into(), path: path.into(), scale: 1.0 }
    }

    /// Sets [`scale`](Self::scale).
    #[must_use]
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            context: None,
            sequences: 1,
            batch: None,
            threads: None,
            layout: None,
            cells: None,
            adapters: Vec::new(),
        }
    }
}

impl SessionOptions {
    /// One sequence, everything else as the model and the machine have it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Positions a sequence can have; 0 is what the model was trained for.
    #[must_use]
    pub fn with_context(mut self, context: usize) -> Self {
        self.context = Some(context);
        self
    }

    /// Sequences that can be open at once.
    #[must_use]
    pub fn with_sequences(mut self, sequences: usize) -> Self {
        self.sequences = sequences;
        self
    }

    /// Tokens one batch can hold.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.batch = Some(batch);
        self
    }

    /// Threads a pass uses.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets [`layout`](Self::layout).
    #[must_use]
    pub fn with_layout(mut self, layout: KvLayout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Sets [`cells`](Self::cells).
    #[must_use]
    pub fn with_cells(mut self, cells: usize) -> Self {
        self.cells = Some(cells);
        self
    }

    /// Adds one of the [`adapters`](Self::adapters).
    #[must_use]
    pub fn with_adapter(mut self, adapter: AdapterSource) -> Self {
        self.adapters.push(adapter);
        self
    }
}

/// An open model file. Not `Send` as a trait object: it is opened on the thread that will use it, and what other threads
/// need (its [`ModelInfo`], its [`Tokenizer`]) is taken out.
pub trait Model {
    /// What the file says of itself.
    fn info(&self) -> &Arc<ModelInfo>;

    /// Its tokenizer; the same one at every call.
    fn tokenizer(&self) -> Arc<dyn Tokenizer>;

    /// Makes a session. The weights are shared between all sessions of a model; the KV cache is the session's own.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for options out of range, cells in all where each sequence has its
    /// own, or two adapters of one name; [`Unsupported`](crate::ErrorKind::Unsupported) for a layout the backend does not have;
    /// [`Io`](crate::ErrorKind::Io) and [`InvalidModel`](crate::ErrorKind::InvalidModel) for the file of an adapter that cannot be
    /// read, is damaged, or was made for another model;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) when the KV cache does not fit the memory there is, before it is
    /// allocated; [`Runtime`](crate::ErrorKind::Runtime).
    fn session(&self, options: &SessionOptions) -> Result<Box<dyn Session>>;

    /// Makes an encoder: for embeddings, classification, reranking.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for options out of range, or that leave the pooling to a model which does not
    /// say it; [`Unsupported`](crate::ErrorKind::Unsupported) for a model, or a pooling, that has no such thing;
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory); [`Runtime`](crate::ErrorKind::Runtime).
    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn Encoder>> {
        let _ = options;
        Err(Error::unsupported("this model has no encoder"))
    }
}
