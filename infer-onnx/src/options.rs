//! How a model is opened.

use crate::GraphOptions;

/// How a model is opened. The default: its graph is loaded, as [`GraphOptions`] do by default.
///
/// ```
/// use infer_onnx::{GraphOptions, ModelOptions, Optimization};
///
/// let options = ModelOptions::new().with_graph(GraphOptions::new().with_optimization(Optimization::Extended));
/// # drop(options);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Opens only the tokenizer and what the files say of themselves: quick, and in little memory. Making a session of it is an error.
    pub vocab_only: bool,
    /// How its graph is loaded. How many threads a session or encoder has is said where it is made; those that are said here are of the first
    /// one that asks for no other number, which then need not load the graph again.
    pub graph: GraphOptions,
}

impl ModelOptions {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`vocab_only`](Self::vocab_only).
    #[must_use]
    pub fn with_vocab_only(mut self, vocab_only: bool) -> Self {
        self.vocab_only = vocab_only;
        self
    }

    /// Sets [`graph`](Self::graph).
    #[must_use]
    pub fn with_graph(mut self, graph: GraphOptions) -> Self {
        self.graph = graph;
        self
    }
}
