//! A model at work.

mod adapters;
mod ahead;
mod cut;
mod device;
pub(crate) mod open;
mod pass;
mod score;
mod state;

use self::{
    adapters::Adapters,
    ahead::Ahead,
    cut::vacate,
    pass::{Damage, Running},
    score::Target,
};
use crate::{KvType, Model, cells::Cells, raw};
use infer_core::{
    Batch, Capabilities, Interrupt, KvLayout, Limits, ModelInfo, OpenOptions, Outputs, Result, Results, Sampled,
    Sampling, Seats, Sequence, Slots, Token, Usage,
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

/// A llama.cpp context behind [`infer_core::Session`].
///
/// It is `Send` and not `Sync`: it may move to another thread between calls, and is used by one at a time. Logits are read where
/// the library left them; a step in steady state allocates nothing in Rust, but for constraints.
///
/// What the trait leaves to a backend, here:
/// - A pass that was [interrupted](infer_core::Session::interrupt) or failed is taken back: the positions it added are removed. Where the
///   model's memory cannot remove a part of a sequence (recurrent and hybrid models, and sliding windows that lost what lies
///   before), the sequences of that batch are spent; and all there are, where the library itself failed in the middle of a pass of a recurrent or
///   hybrid model.
/// - The interrupt is polled between the operations of a pass, on the processor: a pass ends within milliseconds. Of recurrent and
///   hybrid models it is polled before a pass only: one that is stopped half-way would harm the other sequences. Such a pass has 512
///   tokens, unless more are asked for.
/// - The token before what is to be [scored](infer_core::Want::Score) is fed again, where the sequence has one: `Unsupported` where it
///   cannot be taken out.
/// - [`shift`](infer_core::Session::shift) moves the keys at once; positions that a fork shares are not moved.
/// - A state is [saved](infer_core::Session::save) from where it lies, and fits sessions with the same number formats and layout: of
///   [`KvLayout::Split`], with as many sequences.
/// - What a [constraint](infer_core::Constraint) will allow is found on another thread while a pass runs, where
///   [fewer threads](infer_core::SessionOptions::threads) are asked for than [can be had](crate::available_threads); it is started for the first one.
/// - [`truncate`](infer_core::Session::truncate) and [`fork`](infer_core::Session::fork) answer
///   [`Unsupported`](infer_core::ErrorKind::Unsupported) where the model's memory cannot do it exactly.
///
/// Sharing one between threads does not compile:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<infer_llama::Session>();
/// ```
pub struct Session {
    context: raw::Context,
    batch: raw::Batch,
    slots: Slots,
    seats: Seats,
    /// Slot → the adapter its sequence is computed with.
    adapted: Box<[Option<usize>]>,
    cells: Cells,
    /// Cells there are.
    total: usize,
    layout: KvLayout,
    /// Of keys and of values.
    kv_types: (KvType, KvType),
    /// Tokens of a call of the library in which every one of them has a row.
    stride: usize,
    limits: Limits,
    capabilities: Capabilities,
    /// What can be wanted of a pass. Scores can also where some of them are refused, with a reason.
    answered: Capabilities,
    stop: Arc<AtomicBool>,
    model: Model,
    adapters: Adapters,
    /// What the last pass brought.
    results: Results,
    /// The places in the batch that logits are computed at: kept for its memory.
    places: Vec<i32>,
    /// What was drawn on the device in the last pass, entry by entry.
    drawn: Vec<Sampled>,
    /// The sequences of the pass that is running, with their lengths before it. Empty between passes, unless a panic (of a
    /// `tracing` subscriber, say) cut one short: then the next call takes it back.
    running: Vec<Running>,
    /// Whether a call of that pass has stored anything.
    stored: bool,
    /// The slot whose positions are being moved. As above: where they are then, nobody knows.
    moving: Option<u32>,
    /// What the rows of the next call score: kept for its memory.
    targets: Vec<Target>,
    /// Where a pass leaves a core for it.
    ahead: Option<Ahead>,
}

impl Session {
    /// The model, as this crate has it.
    #[must_use]
    pub fn llama_model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn context(&self) -> &raw::Context {
        &self.context
    }

    /// Comes first in every call that changes something: the last pass's results end, and sequences that were dropped give up
    /// their cells.
    fn begin(&mut self) {
        if !self.running.is_empty() {
            self.take_back(Damage::Torn);
        }
        if let Some(slot) = self.moving.take() {
            self.spend(slot);
        }
        self.results.clear();
        let Self { slots, context, seats, cells, .. } = self;
        slots.reap(|slot| vacate(context, seats, cells, slot));
    }

    /// A slot for a new sequence, with room in it.
    fn take_slot(&mut self) -> Result<(u32, Sequence)> {
        let (slot, sequence) = self.slots.open()?;
        let context = self.limits.context;
        self.cells.reserve(slot, context);
        self.seats.reserve(slot, context);
        Ok((slot, sequence))
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

    /// Cells are counted here, since the library does not say: one for each position, those that a fork shares once. In a recurrent
    /// model a cell holds the state of a whole sequence.
    fn usage(&self) -> Usage {
        let open = self.slots.open_count();
        if self.model.facts().is_recurrent {
            let sequences = 0..u32::try_from(self.limits.sequences).unwrap_or(u32::MAX);
            let held = sequences.filter(|&slot| self.slots.len(slot) > 0).count();
            let used = held - self.slots.dropped().filter(|&slot| self.slots.len(slot) > 0).count();
            return Usage::new(open, self.limits.sequences - open, used, self.limits.sequences - used);
        }
        let used = self.cells.used() - self.cells.held_only_by(self.slots.dropped());
        Usage::new(open, self.limits.sequences - open, used, self.total.saturating_sub(used))
    }

    fn interrupt(&self) -> Interrupt {
        let stop = self.stop.clone();
        Interrupt::new(move |raised| stop.store(raised, Ordering::Relaxed))
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        self.begin();
        let adapter = self.adapter_of(options)?;
        let (slot, sequence) = self.take_slot()?;
        self.adapted[slot as usize] = adapter;
        Ok(sequence)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.fork_at(parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.cut_to(seq, len)
    }

    fn shift(&mut self, seq: &Sequence, dropped: Range<usize>) -> Result<()> {
        self.drop_positions(seq, dropped)
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        let vocab = infer_core::Tokenizer::vocab(self.model.tokenizer());
        self.seats.sample_with(slot, sampling, prompt, vocab)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.run_pass(batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        self.results.outputs_over(self.context.logits(), self.limits.vocab)
    }

    fn save(&mut self, seq: &Sequence, to: &mut dyn Write) -> Result<()> {
        self.save_state(seq, to)
    }

    /// All of [`infer_core::Session::restore`].
    ///
    /// Sessions fit that have the [layout](infer_core::KvLayout) and the [number formats](crate::KvType) of the one that wrote the state;
    /// where each sequence has cells of its own ([`Split`](infer_core::KvLayout::Split)), they must be made for as many sequences, too.
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
