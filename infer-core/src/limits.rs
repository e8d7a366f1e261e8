/// What a session can take. Fixed when the session is made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Positions a sequence can have, in tokens.
    pub context: usize,
    /// Tokens one [`Batch`](crate::Batch) can hold, over all its entries.
    pub batch: usize,
    /// Sequences that can be open at once.
    pub sequences: usize,
    /// Entries of the vocabulary: the length of a row of logits, and one more than the largest token id.
    pub vocab: usize,
}

impl Limits {
    /// Limits of these sizes: positions a sequence, tokens a batch, sequences, vocabulary entries.
    #[must_use]
    pub const fn new(context: usize, batch: usize, sequences: usize, vocab: usize) -> Self {
        Self { context, batch, sequences, vocab }
    }
}

/// What a session is able to do, beyond what every session does. A flag that is off means that the call answers
/// [`Unsupported`](crate::ErrorKind::Unsupported) for at least some arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// [`truncate`](crate::Session::truncate) works at every length. Recurrent models can only drop everything.
    pub truncate: bool,
    /// [`fork`](crate::Session::fork) works at every length.
    pub fork: bool,
    /// [`Want::Logits`](crate::Want::Logits) is answered.
    pub logits: bool,
    /// [`Want::Embedding`](crate::Want::Embedding) is answered.
    pub embedding: bool,
    /// [`Want::Score`](crate::Want::Score) is answered.
    pub score: bool,
    /// [`save`](crate::Session::save) and [`restore`](crate::Session::restore) work.
    pub save: bool,
    /// [`shift`](crate::Session::shift) works.
    pub shift: bool,
    /// Tokens are drawn on the device that computes the logits, for the samplings it can draw by; logits then stay there
    /// unless [`Want::Logits`](crate::Want::Logits) asks for them. The others are drawn from host memory, by the same random
    /// numbers.
    pub device_sampling: bool,
}

/// How much of a session is in use at this moment. Sequences that were dropped count as free, also before the session
/// has cleared their cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Sequences that are open.
    pub sequences: usize,
    /// Sequences that can still be opened.
    pub sequences_free: usize,
    /// KV cells in use; a cell holds one position of one sequence, or of several that share it.
    pub cells: usize,
    /// KV cells that are free.
    pub cells_free: usize,
}

impl Usage {
    /// Usage of these counts.
    #[must_use]
    pub const fn new(sequences: usize, sequences_free: usize, cells: usize, cells_free: usize) -> Self {
        Self { sequences, sequences_free, cells, cells_free }
    }
}
