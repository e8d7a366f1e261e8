use crate::{Sequence, Token, sequence::Ticket};
use std::ops::Range;

/// What is wanted back from an entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Want {
    /// Nothing: the tokens are only fed. For all chunks of a prompt but the last.
    Nothing,
    /// The next token, drawn as [`Session::sample_with`](crate::Session::sample_with) says; needs that to have been said.
    Token,
    /// The logits after the last token; and the next token too, where sampling was set.
    Logits,
    /// The hidden state after the last token.
    Embedding,
    /// The log-probability of each token that was fed, given all before it: also those of earlier passes.
    Score,
}

/// What one forward pass is to do: tokens to append to sequences, and what is wanted back for each.
///
/// It owns its arrays and borrows nothing, so it can be kept, sent, and reused with [`clear`](Self::clear); a step in
/// steady state allocates nothing. Nothing is checked here: a mistake is an error of
/// [`Session::decode`](crate::Session::decode), which native code never sees.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    tokens: Vec<Token>,
    entries: Vec<Entry>,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the batch and keeps its memory.
    pub fn clear(&mut self) {
        self.tokens.clear();
        self.entries.clear();
    }

    /// Adds: append `tokens` to `seq` where it ends now. Returns the entry's index, by which
    /// [`Outputs`](crate::Outputs) has the answer.
    ///
    /// A sequence may have one entry a batch, and must not change between this call and the pass.
    pub fn push(&mut self, seq: &Sequence, tokens: &[Token], want: Want) -> usize {
        let from = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        self.entries.push(Entry { ticket: seq.ticket(), start: seq.len(), range: from..self.tokens.len(), want });
        self.entries.len() - 1
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many tokens there are, over all entries.
    #[must_use]
    pub fn token_count(&self) -> usize {
        self.tokens.len()
    }

    /// The entries in the order they were added.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All tokens, entry after entry.
    #[must_use]
    pub fn all_tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The tokens of an entry of this batch.
    ///
    /// # Panics
    /// When the entry is of another, longer batch.
    #[must_use]
    pub fn tokens(&self, entry: &Entry) -> &[Token] {
        &self.tokens[entry.range.clone()]
    }
}

/// One entry of a [`Batch`], as a backend reads it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) ticket: Ticket,
    start: usize,
    range: Range<usize>,
    want: Want,
}

impl Entry {
    /// The session's slot the sequence lives in. Meaningful once [`Slots::check`](crate::Slots::check) has passed.
    #[must_use]
    pub fn slot(&self) -> u32 {
        self.ticket.slot
    }

    /// The position of the entry's first token in its sequence.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Where the entry's tokens lie in [`Batch::all_tokens`].
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// What is wanted back.
    #[must_use]
    pub fn want(&self) -> Want {
        self.want
    }
}
