//! Sequences that are forked and cut.

use super::Session;
use infer_core::{Result, Sequence};

impl Session {
    /// All of [`infer_core::Session::fork`].
    pub(super) fn fork_at(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.begin();
        let from = self.slots.slot(parent)?;
        self.slots.check_cut(from, len)?;
        let kv = self.kvs[from as usize].fork(&self.layout, len)?;
        let (to, child) = self.take_slot()?;
        self.kvs[to as usize] = kv;
        self.seats.fork(from, to, len);
        self.slots.set_len(to, len);
        Ok(child)
    }

    /// All of [`infer_core::Session::truncate`].
    pub(super) fn cut_to(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.slots.check_cut(slot, len)?;
        self.kvs[slot as usize].truncate(&self.layout, len)?;
        self.seats.truncate(slot, len);
        self.slots.set_len(slot, len);
        Ok(())
    }
}
