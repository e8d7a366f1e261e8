//! Cells of sequences that exist: shared or copied, cut, given up.

use super::Session;
use crate::{cells::Cells, error::BACKEND, raw};
use infer_core::{Error, KvLayout, Result, Seats, Sequence};
use std::ops::Range;

impl Session {
    /// All of [`infer_core::Session::fork`].
    pub(super) fn fork_at(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.begin();
        let from = self.slots.slot(parent)?;
        let held = self.slots.check_cut(from, len)?;
        self.check_cut(from, held, len)?;
        let (to, child) = self.take_slot()?;
        // Should it fail, dropping the child gives the slot back.
        self.copy(from, to, held, len)?;
        self.cells.fork(from, to, len);
        self.seats.fork(from, to, len);
        self.adapted[to as usize] = self.adapted[from as usize];
        self.slots.set_len(to, len);
        Ok(child)
    }

    /// All of [`infer_core::Session::truncate`].
    pub(super) fn cut_to(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        let held = self.slots.check_cut(slot, len)?;
        self.check_cut(slot, held, len)?;
        if len == held {
            return Ok(());
        }
        if !self.context.remove(slot, len)? {
            return Err(Error::unsupported("the model's memory cannot cut a sequence").with_backend(BACKEND));
        }
        self.cells.cut(slot, len);
        self.seats.truncate(slot, len);
        self.slots.set_len(slot, len);
        Ok(())
    }

    /// All of [`infer_core::Session::shift`].
    pub(super) fn drop_positions(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        let held = self.slots.check_shift(slot, &dropped)?;
        self.check_shift(slot, held, &dropped)?;
        if dropped.end == held {
            // Nothing is behind it: a cut.
            self.cut_to(seq, dropped.start)?;
            self.seats.forget_sampling(slot);
            return Ok(());
        }
        self.moving = Some(slot);
        let moved = self.context.shift(slot, dropped.clone());
        self.moving = None;
        match moved {
            Ok(true) => {}
            Ok(false) => {
                let message = "the model's memory cannot take positions out of a sequence";
                return Err(Error::unsupported(message).with_backend(BACKEND));
            }
            Err(error) => {
                // Some keys may be where they were, and others not.
                self.spend(slot);
                return Err(error);
            }
        }
        self.slots.set_len(slot, held - dropped.len());
        self.seats.remove(slot, dropped.clone());
        self.cells.remove(slot, dropped);
        Ok(())
    }

    fn check_shift(&mut self, slot: u32, held: usize, dropped: &Range<usize>) -> Result<()> {
        let window = self.model.facts().window;
        let why = if !self.capabilities.shift {
            "this model's positions cannot be moved"
        } else if self.cells.is_any_shared(slot, dropped.end) {
            "positions that a fork shares cannot be moved, for they would move in the other sequence as well; drop the fork first, or fork \
             before the positions that are to be dropped"
        } else if held - dropped.end < window && !self.is_intact(slot, dropped.start) {
            "positions that would come into the sliding window are gone; compute the sequence again"
        } else {
            return Ok(());
        };
        Err(Error::unsupported(why).with_backend(BACKEND))
    }

    /// Whether everything is there that a token at `len` looks back at. Under a sliding window, older positions may have been
    /// given up for newer ones that are gone by now.
    pub(super) fn is_intact(&mut self, slot: u32, len: usize) -> bool {
        let window = self.model.facts().window;
        if window == 0 || len == 0 {
            return true;
        }
        matches!(self.context.first_position(slot), Ok(Some(first)) if first == 0 || first + window <= len + 1)
    }

    /// Whether a sequence of `held` positions can be cut to `len`, as far as can be known before it is tried.
    fn check_cut(&mut self, slot: u32, held: usize, len: usize) -> Result<()> {
        if len > 0 && len < held && (!self.can_cut() || !self.is_intact(slot, len)) {
            return Err(Error::unsupported(format!(
                "the model's memory cannot go back from {held} positions to {len}; compute the sequence again"
            ))
            .with_backend(BACKEND));
        }
        Ok(())
    }

    pub(super) fn can_cut(&self) -> bool {
        let facts = self.model.facts();
        !facts.is_recurrent && !facts.is_hybrid
    }

    /// Copies or shares the first `len` positions of `from` for `to`, which is empty.
    fn copy(&mut self, from: u32, to: u32, held: usize, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        if self.layout == KvLayout::Unified && len < held {
            return self.context.copy(from, to, Some(len));
        }
        self.context.copy(from, to, None)?;
        if len < held && !self.context.remove(to, len)? {
            return Err(Error::unsupported("the model's memory cannot cut a sequence").with_backend(BACKEND));
        }
        Ok(())
    }
}

/// Empties a slot: cells, tokens, sampling.
pub(super) fn vacate(context: &mut raw::Context, seats: &mut Seats, cells: &mut Cells, slot: u32) {
    // Removing all of a sequence always works; if it did not, its cells would be missing and nothing would be wrong.
    if let Err(error) = context.remove(slot, 0) {
        tracing::warn!("the cells of a dropped sequence could not be cleared: {error}");
    }
    cells.cut(slot, 0);
    seats.clear(slot);
}
