//! [`Want::Score`]: the log-probability of every token that is fed.
//!
//! A token is scored by the row of logits before it, so there are as many rows as tokens. They are computed a few dozen at a time and
//! read at once, which bounds their memory. The first token that is fed to a sequence with others in it is scored by the row of the
//! one before, which is gone: that token is taken out and fed again.

use super::{Session, pass::Damage, pass::Failure};
use crate::{error::BACKEND, raw::Pass};
use infer_core::{Batch, Entry, Error, ErrorKind, KvLayout, Result, Token, Want, sampling::log_probability};

/// A token to be scored, and where its score goes.
#[derive(Clone, Copy)]
pub(super) struct Target {
    token: Token,
    score: usize,
}

impl Session {
    /// Whether all scores that are wanted can be had, and whether there is room for the pass where that cannot be left to the library.
    pub(super) fn check_scores(&mut self, batch: &Batch) -> Result<()> {
        // A cell that another sequence holds stays there when this one lets go of it, and there must be one more.
        let (mut again, mut more) = (false, 0);
        for (index, entry) in batch.entries().iter().enumerate() {
            let (slot, start) = (entry.slot(), entry.start());
            if entry.want() != Want::Score || start == 0 {
                continue;
            }
            if !self.can_cut() || !self.is_intact(slot, start - 1) {
                return Err(Error::unsupported(format!(
                    "entry {index} of the batch is to be scored, for which the token before it is fed again, and the model's memory \
                     cannot take one out; score the sequence from its beginning"
                ))
                .with_backend(BACKEND));
            }
            again = true;
            more += usize::from(self.cells.is_any_shared(slot, start - 1));
        }
        // Once they are let go of there is a way back only where there is room for all. Under a window, the library gives up positions
        // also when it looks for room and finds none.
        let windowed = self.model.facts().window > 0 && self.layout == KvLayout::Unified;
        if (again || windowed) && self.total.saturating_sub(self.cells.used()) < batch.token_count() + more {
            let message = "no room in the KV cache for this pass; drop or truncate sequences";
            return Err(Error::new(ErrorKind::OutOfCells, message).with_backend(BACKEND));
        }
        Ok(())
    }

    /// Computes the entries that are to be scored, and their scores.
    pub(super) fn score(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.batch.clear();
        self.places.clear();
        self.targets.clear();
        // All before the first call: what a sliding window gives up in a call, it does not need for the token behind the last one.
        for (index, entry) in batch.entries().iter().enumerate() {
            if entry.want() == Want::Score && entry.start() > 0 {
                self.take_last(index, entry)?;
            }
        }
        for (index, entry) in batch.entries().iter().enumerate() {
            if entry.want() == Want::Score {
                let score = self.results.scores_mut().len();
                self.results.scores_mut().resize(score + entry.range().len(), 0.0);
                if let Some(last) = self.running[index].again {
                    self.feed_scored(
                        entry,
                        last,
                        entry.start() - 1,
                        Some(Target { token: batch.tokens(entry)[0], score }),
                    )?;
                }
                for (at, pair) in batch.tokens(entry).windows(2).enumerate() {
                    let target = Target { token: pair[1], score: score + at + 1 };
                    self.feed_scored(entry, pair[0], entry.start() + at, Some(target))?;
                }
                let (&last, before) = batch.tokens(entry).split_last().expect("an entry without tokens is refused");
                self.feed_scored(entry, last, entry.start() + before.len(), None)?;
            }
            self.results.end_scores();
        }
        self.run_scored()
    }

    /// Feeds a token, whose row has the score of `target`; runs what is there when there is no room for more.
    fn feed_scored(&mut self, entry: &Entry, token: Token, at: usize, target: Option<Target>) -> Result<(), Failure> {
        self.feed_one(entry.slot(), token, at, target.is_some());
        self.targets.extend(target);
        if self.batch.len() < self.stride { Ok(()) } else { self.run_scored() }
    }

    fn run_scored(&mut self) -> Result<(), Failure> {
        self.run()?;
        self.read_scores().map_err(|error| (error, Damage::Partial))?;
        self.batch.clear();
        self.places.clear();
        self.targets.clear();
        Ok(())
    }

    fn read_scores(&mut self) -> Result<()> {
        let vocab = self.limits.vocab;
        self.context.find_logits(self.places.iter().copied(), vocab)?;
        for (row, target) in self.context.logits().chunks_exact(vocab).zip(&self.targets) {
            let found = log_probability(row, target.token).map_err(|error| error.with_backend(BACKEND))?;
            self.results.scores_mut()[target.score] = found;
        }
        Ok(())
    }

    /// Takes the last token out of the sequence of entry `index`, to be fed again.
    fn take_last(&mut self, index: usize, entry: &Entry) -> Result<(), Failure> {
        let (slot, last) = (entry.slot(), entry.start() - 1);
        let token = self.seats.tokens(slot)[last];
        if !self.context.remove(slot, last).map_err(|error| (error, Damage::Unknown))? {
            let error = Error::unsupported("the model's memory cannot cut a sequence").with_backend(BACKEND);
            return Err((error, Damage::Partial));
        }
        self.running[index].again = Some(token);
        Ok(())
    }

    /// After a pass that failed: puts the last token of `len` back, which was taken out. Whether the sequence is as it was.
    pub(super) fn feed_again(&mut self, slot: u32, len: usize, token: Token) -> bool {
        if !self.is_cut_to(slot, len - 1) {
            return false;
        }
        self.batch.clear();
        self.places.clear();
        self.feed_one(slot, token, len - 1, false);
        // Whatever stopped the pass does not stop this: it is one token.
        let fed = matches!(self.context.decode_unstopped(&mut self.batch), Ok(Pass::Done));
        if fed {
            self.renew_last_cell(slot, len);
        }
        fed
    }

    /// The last position of `len` was computed again: its cell is another, where a fork holds the one it was in.
    pub(super) fn renew_last_cell(&mut self, slot: u32, len: usize) {
        self.cells.cut(slot, len - 1);
        self.cells.grow(slot, 1);
    }
}
