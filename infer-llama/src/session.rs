//! A model at work.

mod open;

use crate::{
    Model,
    cells::Cells,
    error::BACKEND,
    raw::{self, Pass},
};
use infer_core::{
    Batch, Capabilities, Entry, Error, ErrorKind, Interrupt, Limits, ModelInfo, OpenOptions, Outputs, Result, Rows,
    Sampled, Sampling, Sequence, Slots, Token, Usage, Want, sampling::Sampler,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// A llama.cpp context behind [`infer_core::Session`].
///
/// It is `Send` and not `Sync`: it may move to another thread between calls, and is used by one at a time. Logits are read where
/// the library left them; a step in steady state allocates nothing in Rust.
///
/// What the trait leaves to a backend, here:
/// - A pass that was [interrupted](infer_core::Session::interrupt) or failed is taken back: the positions it added are removed. Where the
///   model's memory cannot remove a part of a sequence (recurrent and hybrid models, and sliding windows that lost what lies
///   before), the sequences of that batch are spent.
/// - The interrupt is polled between the operations of a pass, on the processor: a pass ends within milliseconds.
/// - [`truncate`](infer_core::Session::truncate) and [`fork`](infer_core::Session::fork) answer
///   [`Unsupported`](ErrorKind::Unsupported) where the model's memory cannot do it exactly.
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
    /// By slot.
    seats: Vec<Seat>,
    cells: Cells,
    /// Cells there are.
    total: usize,
    /// Whether all sequences share one pool of cells.
    unified: bool,
    limits: Limits,
    capabilities: Capabilities,
    stop: Arc<AtomicBool>,
    model: Model,
    // What the last pass brought, and what is needed for that: kept for their memory.
    sampled: Vec<Sampled>,
    /// Entry → where its tokens end in `sampled`.
    ends: Vec<u32>,
    /// Entry → its row of logits, if they were asked for.
    index: Vec<u32>,
    /// The places in the batch that logits are computed at.
    places: Vec<i32>,
    /// The sequences of the pass that is running, with their lengths before it. Empty between passes, unless a panic (of a
    /// `tracing` subscriber, say) cut one short: then the next call takes it back.
    running: Vec<(u32, usize)>,
}

/// What is known of a sequence beside its cells.
#[derive(Default)]
struct Seat {
    /// The tokens it holds: a sampling set later has to know them.
    tokens: Vec<Token>,
    sampler: Option<Sampler>,
}

impl Session {
    /// The model, as this crate has it.
    #[must_use]
    pub fn llama_model(&self) -> &Model {
        &self.model
    }

    /// Comes first in every call that changes something: the last pass's results end, and sequences that were dropped give up
    /// their cells.
    fn begin(&mut self) {
        if !self.running.is_empty() {
            self.take_back(Damage::Partial);
        }
        self.sampled.clear();
        self.ends.clear();
        self.index.clear();
        let Self { slots, context, seats, cells, .. } = self;
        slots.reap(|slot| vacate(context, seats, cells, slot));
    }

    fn seat(&mut self, slot: u32) -> &mut Seat {
        &mut self.seats[slot as usize]
    }

    /// Fills the native batch.
    fn fill(&mut self, batch: &Batch) {
        self.batch.clear();
        self.places.clear();
        for entry in batch.entries() {
            self.running.push((entry.slot(), entry.start()));
            let tokens = batch.tokens(entry);
            let wanted = wants_row(entry);
            for (index, token) in tokens.iter().enumerate() {
                let last = index + 1 == tokens.len();
                let position = i32::try_from(entry.start() + index).expect("a context has fewer than 2^31 positions");
                let place = self.batch.push(token.0.cast_signed(), position, entry.slot(), wanted && last);
                if wanted && last {
                    self.places.push(place);
                }
            }
        }
    }

    /// Runs the pass and says how it failed, if it did. What it left behind is the caller's business.
    fn run(&mut self) -> Result<(), (Error, Damage)> {
        if self.stop.load(Ordering::Relaxed) {
            return Err((cancelled(), Damage::None));
        }
        let pass = self.context.decode(&mut self.batch).map_err(|error| (error, Damage::Unknown))?;
        let failed = |kind, message: &str, code: i64| Error::new(kind, message).with_backend(BACKEND).with_code(code);
        match pass {
            Pass::Done => Ok(()),
            Pass::NoRoom => {
                let message =
                    "no room in the KV cache for this pass; drop or truncate sequences, or use smaller batches";
                Err((failed(ErrorKind::OutOfCells, message, 1), Damage::None))
            }
            Pass::Stopped => Err((cancelled(), Damage::Partial)),
            Pass::Invalid => Err((failed(ErrorKind::Runtime, "the library calls the batch invalid", -1), Damage::None)),
            Pass::Failed(code) => Err((
                failed(ErrorKind::Runtime, "the library failed in the middle of a pass", code.into()),
                Damage::Partial,
            )),
        }
    }

    /// Draws the tokens that are wanted. Samplers have accepted what was fed.
    fn draw(&mut self, batch: &Batch) -> Result<()> {
        let vocab = self.limits.vocab;
        self.context.find_logits(self.places.iter().copied(), vocab)?;
        let logits = self.context.logits();
        let mut rows = (0_u32..).zip(logits.chunks_exact(vocab));
        for entry in batch.entries() {
            let seat = &mut self.seats[entry.slot() as usize];
            let mut shown = Rows::NONE;
            if wants_row(entry) {
                let (number, row) = rows.next().expect("there is a row for each place");
                if let Some(sampler) = &mut seat.sampler {
                    sampler.sample(row, entry.start() + entry.range().len(), &mut self.sampled)?;
                }
                if entry.want() == Want::Logits {
                    shown = number;
                }
            }
            self.index.push(shown);
            self.ends.push(u32::try_from(self.sampled.len()).expect("an entry brings one token"));
        }
        Ok(())
    }

    /// After a pass that failed: its sequences are as they were before, or spent.
    fn take_back(&mut self, damage: Damage) {
        self.sampled.clear();
        self.ends.clear();
        self.index.clear();
        while let Some((slot, start)) = self.running.pop() {
            let whole = match damage {
                Damage::None => true,
                Damage::Partial => self.context.remove(slot, start).unwrap_or(false) && self.is_intact(slot, start),
                Damage::Unknown => false,
            };
            if let Some(sampler) = &mut self.seat(slot).sampler {
                sampler.truncate(start);
            }
            if !whole {
                let Self { slots, context, seats, cells, .. } = self;
                vacate(context, seats, cells, slot);
                slots.spend(slot);
            }
        }
    }

    /// Whether everything is there that a token at `len` looks back at. Under a sliding window, older positions may have been
    /// given up for newer ones that are gone by now.
    fn is_intact(&mut self, slot: u32, len: usize) -> bool {
        let window = self.model.facts().window;
        if window == 0 || len == 0 {
            return true;
        }
        matches!(self.context.first_position(slot), Ok(Some(first)) if first == 0 || first + window <= len)
    }

    /// Whether a sequence of `held` positions can be cut to `len`, as far as can be known before it is tried.
    fn check_cut(&mut self, slot: u32, held: usize, len: usize) -> Result<()> {
        if len > held {
            return Err(Error::invalid_input(format!("the sequence has {held} positions, fewer than {len}")));
        }
        if len > 0 && len < held && (!self.can_cut() || !self.is_intact(slot, len)) {
            return Err(Error::unsupported(format!(
                "the model's memory cannot go back from {held} positions to {len}; compute the sequence again"
            ))
            .with_backend(BACKEND));
        }
        Ok(())
    }

    fn can_cut(&self) -> bool {
        let facts = self.model.facts();
        !facts.is_recurrent && !facts.is_hybrid
    }

    /// Copies or shares the first `len` positions of `from` for `to`, which is empty.
    fn copy(&mut self, from: u32, to: u32, held: usize, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        if self.unified && len < held {
            return self.context.copy(from, to, Some(len));
        }
        self.context.copy(from, to, None)?;
        if len < held && !self.context.remove(to, len)? {
            return Err(Error::unsupported("the model's memory cannot cut a sequence").with_backend(BACKEND));
        }
        Ok(())
    }
}

/// What a failed pass left in the cells of its sequences.
#[derive(Clone, Copy)]
enum Damage {
    None,
    /// Some positions, which can be removed.
    Partial,
    /// The library was left by an exception: whatever it was doing is half done.
    Unknown,
}

/// Empties a slot: cells, tokens, sampling.
fn vacate(context: &mut raw::Context, seats: &mut [Seat], cells: &mut Cells, slot: u32) {
    // Removing all of a sequence always works; if it did not, its cells would be missing and nothing would be wrong.
    if let Err(error) = context.remove(slot, 0) {
        tracing::warn!("the cells of a dropped sequence could not be cleared: {error}");
    }
    cells.cut(slot, 0);
    let seat = &mut seats[slot as usize];
    seat.tokens.clear();
    seat.sampler = None;
}

fn wants_row(entry: &Entry) -> bool {
    matches!(entry.want(), Want::Token | Want::Logits)
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the pass was interrupted; no sequence has grown").with_backend(BACKEND)
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

    /// Cells are counted here, since the library does not say: one for each position, those that a fork shares once.
    fn usage(&self) -> Usage {
        let open = self.slots.open_count();
        let used = self.cells.used() - self.cells.held_only_by(self.slots.dropped());
        Usage::new(open, self.limits.sequences - open, used, self.total.saturating_sub(used))
    }

    fn interrupt(&self) -> Interrupt {
        let stop = self.stop.clone();
        Interrupt::new(move |raised| stop.store(raised, Ordering::Relaxed))
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        self.begin();
        if let Some(adapter) = &options.adapter {
            return Err(Error::invalid_input(format!("no adapter {adapter:?} is loaded")));
        }
        let (slot, sequence) = self.slots.open()?;
        let context = self.limits.context;
        self.cells.reserve(slot, context);
        // Room at once, so that a step never allocates; where there is none, it grows as it goes.
        drop(self.seat(slot).tokens.try_reserve_exact(context));
        Ok(sequence)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.begin();
        let from = self.slots.slot(parent)?;
        let held = self.slots.len(from);
        self.check_cut(from, held, len)?;
        let child = self.open(&OpenOptions::default())?;
        let to = self.slots.slot(&child)?;
        // Should it fail, dropping the child gives the slot back.
        self.copy(from, to, held, len)?;
        self.cells.fork(from, to, len);
        let tokens = std::mem::take(&mut self.seat(to).tokens);
        self.seats[to as usize].tokens = extended(tokens, &self.seats[from as usize].tokens[..len]);
        self.slots.set_len(to, len);
        Ok(child)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        let held = self.slots.len(slot);
        self.check_cut(slot, held, len)?;
        if len == held {
            return Ok(());
        }
        if !self.context.remove(slot, len)? {
            return Err(Error::unsupported("the model's memory cannot cut a sequence").with_backend(BACKEND));
        }
        self.cells.cut(slot, len);
        let seat = self.seat(slot);
        seat.tokens.truncate(len);
        if let Some(sampler) = &mut seat.sampler {
            sampler.truncate(len);
        }
        self.slots.set_len(slot, len);
        Ok(())
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.begin();
        let slot = self.slots.slot(seq)?;
        let mut sampler = Sampler::new(sampling, prompt, self.limits.vocab)?;
        let seat = self.seat(slot);
        sampler.accept(0, &seat.tokens);
        seat.sampler = Some(sampler);
        Ok(())
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.begin();
        self.slots.check(batch, &self.limits, &self.capabilities)?;
        let undrawable =
            |entry: &Entry| entry.want() == Want::Token && self.seats[entry.slot() as usize].sampler.is_none();
        if let Some(index) = batch.entries().iter().position(undrawable) {
            return Err(Error::invalid_input(format!(
                "entry {index} of the batch wants a token, and no sampling was set for its sequence"
            )));
        }
        self.fill(batch);
        if let Err((error, damage)) = self.run() {
            self.take_back(damage);
            return Err(error);
        }
        for entry in batch.entries() {
            if let Some(sampler) = &mut self.seats[entry.slot() as usize].sampler {
                sampler.accept(entry.start(), batch.tokens(entry));
            }
        }
        if let Err(error) = self.draw(batch) {
            self.take_back(Damage::Partial);
            return Err(error);
        }
        for entry in batch.entries() {
            let (slot, tokens) = (entry.slot(), batch.tokens(entry));
            self.cells.grow(slot, tokens.len());
            self.seat(slot).tokens.extend_from_slice(tokens);
        }
        self.slots.commit(batch);
        self.running.clear();
        Ok(())
    }

    fn outputs(&self) -> Outputs<'_> {
        let rows = Rows::new(self.context.logits(), self.limits.vocab, &self.index);
        Outputs::new(&self.sampled, &self.ends).with_logits(rows)
    }
}

/// A vector that keeps its memory, with these tokens in it.
fn extended(mut tokens: Vec<Token>, more: &[Token]) -> Vec<Token> {
    tokens.extend_from_slice(more);
    tokens
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
