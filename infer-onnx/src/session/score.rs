//! [`Want::Score`](infer_core::Want::Score): the log-probability of every token that is fed.
//!
//! A token is scored by the row of logits before it. The first token that is fed to a sequence with others in it is scored by the row of the one
//! before, which is gone: that token is fed again.

use super::Session;
use crate::forward::Call;
use infer_core::{Entry, Result, Token};

/// Tokens fed in one run where each is scored: enough for weights to be read for many tokens, few enough for their rows of logits not
/// to count.
pub(super) const SCORED: usize = 32;

impl Session {
    /// Computes an entry that is to be scored, and its scores.
    pub(super) fn score(&mut self, entry: &Entry, tokens: &[Token]) -> Result<()> {
        let (slot, start) = (entry.slot(), entry.start());
        let again = start.checked_sub(1).map(|last| self.seats.tokens(slot)[last]);
        let fed: Vec<Token> = again.into_iter().chain(tokens.iter().copied()).collect();
        let first = start - usize::from(again.is_some());
        if again.is_none() {
            // Nothing is before it.
            self.results.scores_mut().push(0.0);
        }
        let mut at = 0;
        while at < fed.len() {
            let past = first + at;
            let most = self.scored.min(self.forward.most_tokens(past));
            let part = &fed[at..fed.len().min(at + most)];
            let logits = self.forward.run(&Call { slots: slot..slot + 1, past: &[past], tokens: part })?;
            if logits.rows() < part.len() {
                // The graph gives the last row only: one token at a time, from here on and from now on.
                self.scored = 1;
                continue;
            }
            for (row, &next) in fed[at + 1..].iter().enumerate().take(part.len()) {
                self.results.scores_mut().push(logits.row(row)?.log_probability(next)?);
            }
            at += part.len();
        }
        Ok(())
    }
}
