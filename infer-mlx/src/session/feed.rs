//! What a pass feeds for each entry of its batch.

use super::Session;
use crate::{kv::Growth, sampling::Draw};
use infer_core::{Batch, Entry, Error, ErrorKind, Result, Token, Want};
use std::borrow::Cow;

/// An entry while it is computed.
pub(super) struct Feed<'b> {
    pub(super) slot: u32,
    pub(super) want: Want,
    pub(super) growth: Growth,
    /// What is fed: the entry's tokens, and before them the one that is there already, where it is fed again.
    pub(super) tokens: Cow<'b, [Token]>,
    /// How its token is drawn where the logits are. Where a token is wanted and this is not there, the host draws.
    pub(super) draw: Option<Draw>,
    /// Why no token can be drawn.
    pub(super) error: Option<Error>,
}

impl Session {
    /// What is fed for each entry. Samplers know of it already.
    pub(super) fn feeds<'b>(&mut self, batch: &'b Batch) -> Result<Vec<Feed<'b>>> {
        let mut feeds = Vec::with_capacity(batch.len());
        for entry in batch.entries() {
            let mut feed = self.feed(entry, batch.tokens(entry));
            let draws = entry.want() == Want::Token && self.capabilities.device_sampling;
            if let Some(sampler) = self.seats.sampler_mut(entry.slot()).filter(|_| draws) {
                match Draw::plan(sampler, entry.start() + entry.range().len(), self.limits.vocab) {
                    Ok(draw) => feed.draw = draw,
                    // That of one entry, and no reason not to compute the others.
                    Err(error) if error.kind() == ErrorKind::InvalidConstraint => feed.error = Some(error),
                    Err(error) => return Err(error),
                }
            }
            feeds.push(feed);
        }
        Ok(feeds)
    }

    fn feed<'b>(&self, entry: &Entry, tokens: &'b [Token]) -> Feed<'b> {
        let (slot, want, end) = (entry.slot(), entry.want(), entry.start() + tokens.len());
        let kv = &self.kvs[slot as usize];
        // The first token that is scored is scored by the row of the one before, which is gone.
        let again = self.seats.tokens(slot).last().filter(|_| want == Want::Score);
        let (growth, tokens) = match again {
            Some(&last) => (Growth::from_last(kv, &self.layout, end), [&[last], tokens].concat().into()),
            None => (Growth::new(kv, &self.layout, end), tokens.into()),
        };
        Feed { slot, want, growth, tokens, draw: None, error: None }
    }
}
