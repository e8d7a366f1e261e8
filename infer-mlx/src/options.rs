//! How models are opened and sessions are made.

use infer_core::SessionOptions as CommonOptions;

/// How a model is opened. The default: all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelOptions {
    /// Opens only the tokenizer and what the files say of themselves: quick, and in little memory. Making a session of it is an error.
    pub vocab_only: bool,
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
}

/// How a session is made: what all backends have, and what only this one has.
///
/// ```
/// use infer_mlx::SessionOptions;
///
/// let options = SessionOptions::new().with_context(4096).with_sequences(8).with_micro_batch(256);
/// assert_eq!(options.common.sequences, 8);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// What all backends have.
    pub common: CommonOptions,
    /// Tokens that are computed at once; a batch is cut into as many such pieces as it takes. `None` is 512.
    pub micro_batch: Option<usize>,
    /// Draw tokens where the logits are computed, where the sampling allows it: greedy, or by temperature, top_k, top_p and min_p, with biases
    /// and constraints. The random numbers are the host's, so the same tokens are drawn, but for draws on the very edge between two. Only
    /// tokens then come back unless logits are asked for. `None` is where the device has memory of its own: on the CPU, rows of
    /// logits are read where they lie.
    pub device_sampling: Option<bool>,
}

impl From<CommonOptions> for SessionOptions {
    fn from(common: CommonOptions) -> Self {
        Self { common, ..Self::default() }
    }
}

impl SessionOptions {
    /// One sequence with the model's own context.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Positions a sequence can have; 0 is what the model was trained for.
    #[must_use]
    pub fn with_context(mut self, context: usize) -> Self {
        self.common = self.common.with_context(context);
        self
    }

    /// Sequences that can be open at once; at most 256.
    #[must_use]
    pub fn with_sequences(mut self, sequences: usize) -> Self {
        self.common = self.common.with_sequences(sequences);
        self
    }

    /// Tokens one batch can hold; 512 by default.
    #[must_use]
    pub fn with_batch(mut self, batch: usize) -> Self {
        self.common = self.common.with_batch(batch);
        self
    }

    /// Sets [`micro_batch`](Self::micro_batch).
    #[must_use]
    pub fn with_micro_batch(mut self, tokens: usize) -> Self {
        self.micro_batch = Some(tokens);
        self
    }

    /// Sets [`device_sampling`](Self::device_sampling).
    #[must_use]
    pub fn with_device_sampling(mut self, on: bool) -> Self {
        self.device_sampling = Some(on);
        self
    }
}
