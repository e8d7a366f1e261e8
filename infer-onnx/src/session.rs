//! A decoder at work.

mod cut;
mod open;
mod pass;
mod plan;
mod row;
mod score;
mod state;

pub(crate) use open::threads;

pub(crate) use row::Logits;

use crate::{decoder::Decoder, forward::Forward};
use infer_core::{
    Batch, Capabilities, Error, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Results, Sampling, Seats,
    Sequence, Slots, Token, Usage, Vocab,
};
use std::{
    fmt,
    io::{Read, Write},
    ops::Range,
    sync::Arc,
};

/// A decoder's graph behind [`infer_core::Session`].
///
/// Keys and values stay tensors of ONNX Runtime from step to step, in one of two forms:
/// - Where the graph writes them into the buffer it reads them from (`past_present_share_buffer` in a `genai_config.json`,
///   with the operator `GroupQueryAttention`), a step copies none of them. Sequences that get one token each are computed
///   together, whatever their lengths; each longer piece of a prompt by itself. A fork copies what it begins with.
/// - Where a run gives new tensors (an export by Optimum), they are the past of the next one. Each sequence of a batch is
///   computed by itself; a fork shares tensors, and a cut copies what is left. Where it is two graphs in one (`use_cache_branch`, as Optimum
///   exported before), the one without keys and values computes what a sequence begins with, in one run; the other gets the tokens behind it
///   one by one, since that is what it was made for. A prompt that is longer than [a batch](infer_core::SessionOptions::batch) is faster with a larger one.
///
/// What the trait leaves to a backend, here:
/// - A pass that was [interrupted](infer_core::Session::interrupt) or failed leaves everything as it was. The interrupt is
///   looked at between the operators of a graph.
/// - [`Want::Score`](infer_core::Want::Score) feeds the token before again, where there is one, and tokens one by one where
///   the graph gives logits of the last one only.
/// - [`Want::Embedding`](infer_core::Want::Embedding), [`shift`](infer_core::Session::shift) and adapters are `Unsupported`.
/// - A state fits sessions of the same model with the same numbers, in either form.
/// - Sessions of a model share weights as far as they lie in its files; those that the runtime packs anew are each one's own.
/// - The layout is [`Split`](infer_core::KvLayout::Split): each sequence has room for a whole context.
///
/// It is `Send` and not `Sync`: it may move to another thread between calls, and is used by one at a time. Sharing one does not compile:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<infer_onnx::Session>();
/// ```
pub struct Session {
    forward: Forward,
    slots: Slots,
    seats: Seats,
    limits: Limits,
    capabilities: Capabilities,
    interrupt: Interrupt,
    info: Arc<ModelInfo>,
    vocab: Arc<Vocab>,
    decoder: Arc<Decoder>,
    /// What the last pass brought.
    results: Results,
    /// Tokens computed in one run where each of them is scored.
    scored: usize,
    work: pass::Work,
}

impl Session {
    /// Bytes of keys and values that this crate has copied since the session was made. In the form with a shared buffer only
    /// [`fork`](infer_core::Session::fork) adds to it; in the other, cuts do, and forks at another length than the parent's.
    /// What is saved and restored is not counted, nor what the runtime copies.
    #[must_use]
    pub fn kv_bytes_copied(&self) -> u64 {
        self.forward.copied()
    }

    /// Comes first in every call that changes something: the last pass's results end, and sequences that were dropped give up
    /// what they held.
    fn begin(&mut self) {
        // A panic (of a `tracing` subscriber, say) may have cut a pass short.
        self.forward.kv.discard();
        self.results.clear();
        let Self { slots, forward, seats, .. } = self;
        slots.reap(|slot| vacate(forward, seats, slot));
    }

    /// A slot for a new sequence.
    fn take_slot(&mut self) -> Result<(u32, Sequence)> {
        let (slot, sequence) = self.slots.open()?;
        // Room at once, so that a step never allocates; where there is none, it grows as it goes.
        self.seats.reserve(slot, self.limits.context);
        Ok((slot, sequence))
    }
}

/// Empties a slot: keys and values, tokens, sampling.
fn vacate(forward: &mut Forward, seats: &mut Seats, slot: u32) {
    // Nothing is copied where nothing is kept, and so nothing can fail.
    if let Err(error) = forward.truncate(slot, 0) {
        tracing::warn!("what a dropped sequence held could not be let go of: {error}");
    }
    seats.clear(slot);
}

impl infer_core::Session for Session {
    fn model(&self) -> &Arc<ModelInfo> {
        &self.info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A cell is a position of one sequence; a fork has its own, also where it shares tensors for a while.
    fn usage(&self) -> Usage {
        self.slots.usage(&self.limits)
    }

    fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
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
        Err(Error::unsupported("keys in a graph cannot be moved to other positions; compute the sequence again"))
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        self.seats.sample_with(slot, sampling, prompt, &self.vocab)
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
            .field("model", &self.info.description)
            .field("limits", &self.limits)
            .field("usage", &infer_core::Session::usage(self))
            .finish_non_exhaustive()
    }
}
