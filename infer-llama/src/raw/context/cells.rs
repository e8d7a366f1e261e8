//! Positions of sequences: removed, shared, moved, looked for.

use super::Context;
use crate::raw::call;
use infer_core::{Error, ErrorKind, Result};
use std::ops::Range;

impl Context {
    /// Removes positions `from..` of a sequence. `false`: this memory cannot cut part-way, nothing has changed.
    pub(crate) fn remove(&mut self, sequence: u32, from: usize) -> Result<bool> {
        self.forget_rows();
        let mut removed = false;
        let (api, context, out) = (self.model.door.api, self.ptr.as_ptr(), &raw mut removed);
        let (sequence, from) = (self.sequence(sequence)?, position(from)?);
        call("remove positions", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; the place is valid.
            unsafe { api.memory_seq_rm(context, sequence, from, -1, out, error) })?;
        Ok(removed)
    }

    /// Takes positions out of a sequence, and moves those behind them up. `false`: this memory cannot, nothing has changed. After an
    /// error the sequence is to be removed.
    pub(crate) fn shift(&mut self, sequence: u32, dropped: Range<usize>) -> Result<bool> {
        let (from, to) = (position(dropped.start)?, position(dropped.end)?);
        let mut removed = false;
        let out = &raw mut removed;
        let sequence_id = self.sequence(sequence)?;
        let (api, context) = self.parts();
        call("remove positions", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; the place is valid.
            unsafe { api.memory_seq_rm(context, sequence_id, from, to, out, error) })?;
        if !removed {
            return Ok(false);
        }
        call("move positions", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has.
            unsafe { api.memory_seq_add(context, sequence_id, to, -1, from - to, error) })?;
        // At once: a pass that is interrupted while it does this would leave some keys moved, and the next one move them again.
        self.settle()?;
        Ok(true)
    }

    /// Gives sequence `to`, which is empty, the positions of sequence `from`: all, or the first `len`. The second is for unified
    /// cells only.
    pub(crate) fn copy(&mut self, from: u32, to: u32, len: Option<usize>) -> Result<()> {
        self.forget_rows();
        if len.is_some() && self.shape.cells != self.shape.cells_per_sequence {
            // llama.cpp asserts.
            return Err(Error::new(ErrorKind::Unsupported, "cells of their own are copied for a whole sequence only"));
        }
        let (api, context) = (self.model.door.api, self.ptr.as_ptr());
        let (from, to) = (self.sequence(from)?, self.sequence(to)?);
        let (first, end) = match len {
            Some(len) => (0, position(len)?),
            None => (-1, -1),
        };
        call("copy a sequence", |error|
            // SAFETY: the context lives and is this thread's alone; both sequences are ones it has; a part of a sequence is
            // copied only where the sequences share one stream of cells.
            unsafe { api.memory_seq_cp(context, from, to, first, end, error) })
    }

    /// The first position that is still held for a sequence; `None` when there is none.
    pub(crate) fn first_position(&mut self, sequence: u32) -> Result<Option<usize>> {
        self.forget_rows();
        let mut first = -1;
        let (api, context, out) = (self.model.door.api, self.ptr.as_ptr(), &raw mut first);
        let sequence = self.sequence(sequence)?;
        call("ask for a position", |error|
            // SAFETY: the context lives and is this thread's alone; the sequence is one it has; the place is valid.
            unsafe { api.memory_seq_pos_min(context, sequence, out, error) })?;
        Ok(usize::try_from(first).ok())
    }

    /// A sequence id that this context has.
    pub(in crate::raw) fn sequence(&self, sequence: u32) -> Result<i32> {
        let known = sequence < self.shape.sequences;
        i32::try_from(sequence).ok().filter(|_| known).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidInput,
                format!("sequence {sequence} of a context with {}", self.shape.sequences),
            )
        })
    }
}

pub(in crate::raw) fn position(position: usize) -> Result<i32> {
    i32::try_from(position).map_err(|_| Error::invalid_input(format!("position {position} is beyond 2^31")))
}
