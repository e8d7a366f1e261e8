//! A model at work.

mod cut;
mod feed;
mod open;
mod pass;
mod plan;
mod rows;
mod state;
#[cfg(test)]
mod tests;

use crate::{
    DType, Model,
    kv::{Kv, Layout},
};
use infer_core::{
    Batch, Capabilities, Error, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Results, Sampling, Seats,
    Sequence, Slots, Token, Tokenizer as _, Usage,
};
use std::{
    fmt,
    io::{Read, Write},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A decoder behind [`infer_core::Session`].
///
/// All tokens of a batch, whatever their sequences, are rows of one lazily built graph, which is evaluated at once; a batch of more tokens
/// than one evaluation takes ([`X) is computed in several, and counts when the last one has succeeded.
/// Keys and values stay in memory of MLX; a step copies none of them, but when a sequence outgrows its buffers.
///
/// What the trait leaves to a backend, here:
/// - A pass that was [interrupted](infer_core::Session::interrupt) or failed leaves everything as it was. The interrupt is looked at before each
///   evaluation, which itself cannot be stopped.
/// - A [fork](infer_core::Session::fork) shares its parent's keys and values; whichever of them appends second copies them first.
/// - Layers that attend to a window let go of what is behind it, now and then: [`truncate`](infer_core::Session::truncate) and
///   [`fork`](infer_core::Session::fork) answer [`Unsupported`](infer_core::ErrorKind::Unsupported) where that is needed again. Capabilities
///   say so, unless the whole context fits into the window.
/// - [`Want::Score`](infer_core::Want::Score) feeds the token before again, where there is one, into a copy of the sequence's keys and values.
/// - [`Want::Embedding`](infer_core::Want::Embedding) is the hidden state behind the model's last norm.
/// - [`shift`](infer_core::Session::shift) and adapters are `Unsupported`.
/// - The layout is [`Split`](infer_core::KvLayout::Split): each sequence may fill a whole context. Memory is taken as it grows.
///
/// Like all that is made of MLX it stays on its thread:
///
/// ```compile_fail,E0277
/// fn sent<T: Send>() {}
/// sent::<infer_mlx::Session>();
/// ```
pub struct Session {
    model: Model,
    layout: Layout,
    slots: Slots,
    seats: Seats,
    /// By slot.
    kvs: Vec<Kv>,
    limits: Limits,
    capabilities: Capabilities,
    /// The most tokens of one evaluation.
    micro_batch: usize,
    /// The type of keys and values.
    dtype: DType,
    /// Logits that the model gives a token: as many as the vocabulary has entries, or more.
    width: usize,
    stop: Arc<AtomicBool>,
    /// The sequences of a pass that is running, with their lengths before it. Between passes there are some only after a panic.
    running: Vec<(u32, usize)>,
    /// What the last pass brought.
    results: Results,
}

impl Session {
    /// The model, as this crate has it.
    #[must_use]
    pub fn mlx_model(&self) -> &Model {
        &self.model
    }

    /// Comes first in every call that changes something: the last pass's results end, and sequences that were dropped give up
    /// what they held.
    fn begin(&mut self) {
        self.take_back();
        let Self { slots, seats, kvs, .. } = self;
        slots.reap(|slot| {
            seats.clear(slot);
            kvs[slot as usize] = Kv::default();
        });
    }

    /// A slot for a new sequence.
    fn take_slot(&mut self) -> Result<(u32, Sequence)> {
        let (slot, sequence) = self.slots.open()?;
        // Room at once, so that no step has to look for it.
        self.seats.reserve(slot, self.limits.context);
        Ok((slot, sequence))
    }

    fn check_interrupt(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(pass::cancelled()) } else { Ok(()) }
    }
}

impl infer_core::Session for Session {
    fn model(&self) -> &Arc<ModelInfo> {
        self.model.info()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A cell is a position of one sequence; a fork has its own, also where it shares buffers for a while.
    fn usage(&self) -> Usage {
        self.slots.usage(&self.limits)
    }

    fn interrupt(&self) -> Interrupt {
        let stop = self.stop.clone();
        Interrupt::new(move |raised| stop.store(raised, Ordering::Relaxed))
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        self.begin();
        if let Some(name) = &options.adapter {
            return Err(Error::invalid_input(format!(
                "no adapter {name:?} is loaded; the session was made without any"
            )));
        }
        Ok(self.take_slot()?.1)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.fork_at(parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.cut_to(seq, len)
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.slots.check_shift(slot, &dropped)?;
        Err(Error::unsupported(
            "keys that were turned by their positions are not moved to others; compute the sequence again",
        ))
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.seats.sample_with(slot, sampling, prompt, self.model.tokenizer().vocab())
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.run_pass(batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        self.results.outputs()
    }

    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.save_state(seq, to)
    }

    fn restore(&mut self, from: &mut dyn Read) -> Result<Sequence> {
        self.restore_state(from)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("model", &self.model)
            .field("limits", &self.limits)
            .field("usage", &infer_core::Session::usage(self))
            .finish_non_exhaustive()
    }
}
