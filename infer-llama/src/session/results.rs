//! What a pass brought, kept between passes for its memory.

use infer_core::{Error, Outputs, Rows, Sampled};

#[derive(Default)]
pub(super) struct Results {
    pub(super) sampled: Vec<Sampled>,
    /// Entry → where its tokens end in `sampled`.
    ends: Vec<u32>,
    /// The most probable tokens, where a sampling asks for them.
    pub(super) top: Vec<Sampled>,
    /// Entry → where its tokens end in `top`.
    top_ends: Vec<u32>,
    /// Entry → its row of logits, if they were asked for.
    logits: Vec<u32>,
    /// Hidden states, one after the other.
    pub(super) hidden: Vec<f32>,
    /// Entry → its hidden state, if it was asked for.
    pub(super) hidden_rows: Vec<u32>,
    pub(super) scores: Vec<f32>,
    /// Entry → where its scores end.
    pub(super) score_ends: Vec<u32>,
    /// Why no token was drawn for some entries.
    errors: Vec<(u32, Error)>,
}

impl Results {
    /// With room for passes of so many entries.
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self {
            sampled: Vec::with_capacity(entries),
            ends: Vec::with_capacity(entries),
            top: Vec::new(),
            top_ends: Vec::with_capacity(entries),
            logits: Vec::with_capacity(entries),
            ..Self::default()
        }
    }

    pub(super) fn clear(&mut self) {
        self.sampled.clear();
        self.ends.clear();
        self.top.clear();
        self.top_ends.clear();
        self.logits.clear();
        self.hidden.clear();
        self.hidden_rows.clear();
        self.scores.clear();
        self.score_ends.clear();
        self.errors.clear();
    }

    /// No token was drawn for the entry that is next to [end](Self::end_entry).
    pub(super) fn fail_entry(&mut self, error: Error) {
        self.errors.push((number(self.ends.len()), error));
    }

    /// The tokens that were sampled or found most probable since the last entry are this one's, and so is a row of logits, if
    /// it is not [`Rows::NONE`].
    pub(super) fn end_entry(&mut self, logits: u32) {
        self.logits.push(logits);
        self.ends.push(number(self.sampled.len()));
        self.top_ends.push(number(self.top.len()));
    }

    /// A view of it, with the logits that the context holds.
    pub(super) fn outputs<'s>(&'s self, logits: &'s [f32], vocab: usize) -> Outputs<'s> {
        // All are as wide as each other.
        let rows = self.hidden_rows.iter().filter(|&&row| row != Rows::NONE).count();
        let width = self.hidden.len().checked_div(rows).unwrap_or(0);
        Outputs::new(&self.sampled, &self.ends)
            .with_top(&self.top, &self.top_ends)
            .with_logits(Rows::new(logits, vocab, &self.logits))
            .with_embeddings(Rows::new(&self.hidden, width, &self.hidden_rows))
            .with_scores(&self.scores, &self.score_ends)
            .with_errors(&self.errors)
    }
}

/// A number of entries, or of what they bring: bounded for each, and few.
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a pass brings fewer than 2^32 of anything")
}
