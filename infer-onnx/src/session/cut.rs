//! Sequences that are forked and cut.

use super::Session;
use infer_core::{Error, Result, Sequence};

impl Session {
    /// All of [`infer_core::Session::fork`].
    pub(super) fn fork_at(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.begin();
        let from = self.slots.slot(parent)?;
        self.check_len(from, len)?;
        let (to, child) = self.take_slot()?;
        // Should it fail, dropping the child gives the slot back.
        self.forward.fork(from, to, len)?;
        // Taken out for a moment, since both lie in one vector.
        let tokens = std::mem::take(&mut self.seat(from).tokens);
        self.seat(to).tokens.extend_from_slice(&tokens[..len]);
        self.seat(from).tokens = tokens;
        self.slots.set_len(to, len);
        Ok(child)
    }

    /// All of [`infer_core::Session::truncate`].
    pub(super) fn cut_to(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.check_len(slot, len)?;
        self.forward.truncate(slot, len)?;
        let seat = self.seat(slot);
        seat.tokens.truncate(len);
        if let Some(sampler) = &mut seat.sampler {
            sampler.truncate(len);
        }
        self.slots.set_len(slot, len);
        Ok(())
    }

    fn check_len(&self, slot: u32, len: usize) -> Result<()> {
        let held = self.slots.len(slot);
        if len <= held {
            return Ok(());
        }
        Err(Error::invalid_input(format!("the sequence has {held} positions, fewer than {len}")))
    }
}
