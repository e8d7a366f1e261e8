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
    /// The rows of logits that were asked for, one after the other.
    pub(super) logits: Vec<f32>,
    /// Entry → its row of logits, if it was asked for.
    logits_rows: Vec<u32>,
    shown: u32,
    pub(super) scores: Vec<f32>,
    /// Entry → where its scores end.
    pub(super) score_ends: Vec<u32>,
    /// Why no token was drawn for some entries.
    errors: Vec<(u32, Error)>,
}

impl Results {
    pub(super) fn clear(&mut self) {
        self.sampled.clear();
        self.ends.clear();
        self.top.clear();
        self.top_ends.clear();
        self.logits.clear();
        self.logits_rows.clear();
        self.shown = 0;
        self.scores.clear();
        self.score_ends.clear();
        self.errors.clear();
    }

    /// No token was drawn for the entry that is next to [end](Self::end_entry).
    pub(super) fn fail_entry(&mut self, error: Error) {
        self.errors.push((number(self.ends.len()), error));
    }

    /// The tokens that were sampled or found most probable since the last entry are this one's, and so is the last row of logits, if it is
    /// to be `shown`.
    pub(super) fn end_entry(&mut self, shown: bool) {
        self.logits_rows.push(if shown { self.shown } else { Rows::NONE });
        self.shown += u32::from(shown);
        self.ends.push(number(self.sampled.len()));
        self.top_ends.push(number(self.top.len()));
    }

    /// The scores that were found since the last entry are this one's.
    pub(super) fn end_scores(&mut self) {
        self.score_ends.push(number(self.scores.len()));
    }

    /// A view of it.
    pub(super) fn outputs(&self, vocab: usize) -> Outputs<'_> {
        Outputs::new(&self.sampled, &self.ends)
            .with_top(&self.top, &self.top_ends)
            .with_logits(Rows::new(&self.logits, vocab, &self.logits_rows))
            .with_scores(&self.scores, &self.score_ends)
            .with_errors(&self.errors)
    }
}

/// A number of entries, or of what they bring: bounded for each, and few.
fn number(count: usize) -> u32 {
    u32::try_from(count).expect("a pass brings fewer than 2^32 of anything")
}
