use crate::{Error, Token};

/// A token drawn from a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Sampled {
    /// The token.
    pub token: Token,
    /// Its natural-log probability in the model's own distribution: before constraint, penalties, bias, temperature and truncation.
    /// Not a number for a forced token that came with a drawn one: the model was not asked.
    pub logprob: f32,
}

impl Sampled {
    /// A drawn token with its natural-log probability.
    #[must_use]
    pub const fn new(token: Token, logprob: f32) -> Self {
        Self { token, logprob }
    }
}

/// Rows of `f32` in memory of a runtime, found by the index of a batch's entry. For backends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows<'s> {
    data: &'s [f32],
    width: usize,
    index: &'s [u32],
}

impl<'s> Rows<'s> {
    /// In place of a row number: the entry has no row.
    pub const NONE: u32 = u32::MAX;

    /// `data` holds rows of `width` numbers one after the other; entry `i`'s is row `index[i]`, or none when that is
    /// [`NONE`](Self::NONE) or lies outside.
    #[must_use]
    pub const fn new(data: &'s [f32], width: usize, index: &'s [u32]) -> Self {
        Self { data, width, index }
    }

    fn row(&self, entry: usize) -> Option<&'s [f32]> {
        let row = *self.index.get(entry)?;
        if row == Self::NONE || self.width == 0 {
            return None;
        }
        let from = (row as usize).checked_mul(self.width)?;
        self.data.get(from..from.checked_add(self.width)?)
    }
}

/// What the last pass brought, by the index that [`Batch::push`](crate::Batch::push) returned.
///
/// It is a view: `Copy`, and borrowed from the session, so that the next call that changes the session ends it. Keeping
/// it longer does not compile. It is empty after a pass that failed and after any other `&mut` call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outputs<'s> {
    sampled: &'s [Sampled],
    ends: &'s [u32],
    top: &'s [Sampled],
    top_ends: &'s [u32],
    logits: Rows<'s>,
    embeddings: Rows<'s>,
    scores: &'s [f32],
    score_ends: &'s [u32],
    errors: &'s [(u32, Error)],
}

impl<'s> Outputs<'s> {
    /// For backends: `sampled` holds the drawn tokens of all entries one after the other, those of entry `i` ending before
    /// `ends[i]`.
    #[must_use]
    pub const fn new(sampled: &'s [Sampled], ends: &'s [u32]) -> Self {
        const NO_ROWS: Rows<'static> = Rows::new(&[], 0, &[]);
        Self {
            sampled,
            ends,
            top: &[],
            top_ends: &[],
            logits: NO_ROWS,
            embeddings: NO_ROWS,
            scores: &[],
            score_ends: &[],
            errors: &[],
        }
    }

    /// For backends: adds the most probable tokens of all entries one after the other, those of entry `i` ending before
    /// `ends[i]`. [`Sampler::top`](crate::sampling::Sampler::top) has them.
    #[must_use]
    pub const fn with_top(mut self, top: &'s [Sampled], ends: &'s [u32]) -> Self {
        self.top = top;
        self.top_ends = ends;
        self
    }

    /// For backends: adds the rows of logits.
    #[must_use]
    pub const fn with_logits(mut self, logits: Rows<'s>) -> Self {
        self.logits = logits;
        self
    }

    /// For backends: adds the rows of hidden states.
    #[must_use]
    pub const fn with_embeddings(mut self, embeddings: Rows<'s>) -> Self {
        self.embeddings = embeddings;
        self
    }

    /// For backends: adds the scores of all entries one after the other, those of entry `i` ending before `ends[i]`.
    #[must_use]
    pub const fn with_scores(mut self, scores: &'s [f32], ends: &'s [u32]) -> Self {
        self.scores = scores;
        self.score_ends = ends;
        self
    }

    /// For backends: adds why no token was drawn for some entries, by their index.
    #[must_use]
    pub const fn with_errors(mut self, errors: &'s [(u32, Error)]) -> Self {
        self.errors = errors;
        self
    }

    /// How many entries the pass had; 0 when there is nothing.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is nothing to read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The tokens of entry `entry`: one, or none where none was wanted or no sampling was set; more than one where a constraint
    /// leaves no choice about what follows. Feeding those together saves passes; fed the first one alone, the sequence
    /// draws the others again, the same.
    #[must_use]
    pub fn sampled(&self, entry: usize) -> &'s [Sampled] {
        part(self.sampled, self.ends, entry)
    }

    /// The first token of entry `entry`, if one was drawn.
    #[must_use]
    pub fn token(&self, entry: usize) -> Option<Token> {
        self.sampled(entry).first().map(|sampled| sampled.token)
    }

    /// Why no token was drawn for entry `entry`, where one was wanted: its [constraint](crate::Sampling::constraint) cannot be kept
    /// any further. The pass is done and the sequence has grown, like all others; they are none the worse for it.
    ///
    /// It is an [`InvalidConstraint`](crate::ErrorKind::InvalidConstraint). The sequence can be cut, or given another sampling.
    #[must_use]
    pub fn error(&self, entry: usize) -> Option<&'s Error> {
        self.errors.iter().find(|(index, _)| *index as usize == entry).map(|(_, error)| error)
    }

    /// The most probable tokens after entry `entry`, in the model's own distribution: the most probable first, of equals the one
    /// with the lower id. As many as [`Sampling::logprobs`](crate::Sampling::logprobs) asks, where a token was drawn.
    ///
    /// ```
    /// use infer_core::testing::{Script, ScriptedModel};
    /// use infer_core::{Batch, Model, OpenOptions, Sampling, Session, SessionOptions, Token, Want};
    ///
    /// let mut session = ScriptedModel::new(Script::new()).session(&SessionOptions::new())?;
    /// let seq = session.open(&OpenOptions::default())?;
    /// session.sample_with(&seq, &Sampling::greedy().with_logprobs(3), &[])?;
    /// let mut batch = Batch::new();
    /// let entry = batch.push(&seq, &[Token(65)], Want::Token);
    /// session.decode(&batch)?;
    /// let outputs = session.outputs();
    /// assert_eq!(outputs.top(entry).len(), 3);
    /// assert_eq!(outputs.top(entry)[0], outputs.sampled(entry)[0], "greedy, the best is drawn");
    /// # Ok::<(), infer_core::Error>(())
    /// ```
    #[must_use]
    pub fn top(&self, entry: usize) -> &'s [Sampled] {
        part(self.top, self.top_ends, entry)
    }

    /// The logits after entry `entry`'s last token, one a vocabulary entry, as the model computed them. `None` unless
    /// [`Want::Logits`](crate::Want::Logits) was asked.
    #[must_use]
    pub fn logits(&self, entry: usize) -> Option<&'s [f32]> {
        self.logits.row(entry)
    }

    /// The hidden state after entry `entry`'s last token. `None` unless [`Want::Embedding`](crate::Want::Embedding) was
    /// asked.
    #[must_use]
    pub fn embedding(&self, entry: usize) -> Option<&'s [f32]> {
        self.embeddings.row(entry)
    }

    /// The natural-log probability of each token that entry `entry` fed, given all before it; 0 for the first token of a
    /// sequence, which has nothing before it. Empty unless [`Want::Score`](crate::Want::Score) was asked.
    #[must_use]
    pub fn scores(&self, entry: usize) -> &'s [f32] {
        part(self.scores, self.score_ends, entry)
    }
}

/// Entry `entry`'s part of `all`, where that of entry `i` ends before `ends[i]`.
fn part<'s, T>(all: &'s [T], ends: &[u32], entry: usize) -> &'s [T] {
    let Some(&end) = ends.get(entry) else { return &[] };
    let start = entry.checked_sub(1).map_or(0, |before| ends[before]);
    all.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_tokens_and_rows_by_entry() {
        let sampled = [Sampled::new(Token(7), -0.5), Sampled::new(Token(8), 0.0), Sampled::new(Token(9), -1.0)];
        let (data, index) = ([0.0, 1.0, 2.0, 3.0], [1, Rows::NONE, 5]);
        let out = Outputs::new(&sampled, &[2, 2, 3]).with_logits(Rows::new(&data, 2, &index));
        assert_eq!(out.len(), 3);
        assert_eq!(out.token(0), Some(Token(7)));
        assert_eq!((out.sampled(0).len(), out.sampled(1).len(), out.sampled(2).len()), (2, 0, 1));
        assert_eq!((out.token(1), out.token(2), out.token(3)), (None, Some(Token(9)), None));
        assert_eq!(out.logits(0), Some(&data[2..]));
        assert_eq!((out.logits(1), out.logits(2), out.logits(3), out.embedding(0)), (None, None, None, None));
        let top = out.with_top(&sampled, &[1, 1, 3]);
        assert_eq!((top.top(0), top.top(1), top.top(2)), (&sampled[..1], &[][..], &sampled[1..]));
        assert!(out.top(0).is_empty() && top.top(3).is_empty());
        let scored = out.with_scores(&[0.0, -1.5, -0.5], &[0, 2, 3]);
        assert_eq!((scored.scores(0), scored.scores(1), scored.scores(2)), (&[][..], &[0.0, -1.5][..], &[-0.5][..]));
        assert!(out.scores(1).is_empty() && scored.scores(3).is_empty());
        let failed = [(1, Error::invalid_input("why"))];
        let failed = out.with_errors(&failed);
        assert!(failed.error(0).is_none() && failed.error(1).is_some_and(|error| error.to_string() == "why"));
        assert!(Outputs::default().is_empty());
    }
}
