//! One forward pass: filled, run, its results found; or taken back.

use super::{Session, cut::vacate};
use crate::{error::BACKEND, raw::Pass};
use infer_core::{Batch, Entry, Error, ErrorKind, Result, Rows, Want};
use std::sync::atomic::Ordering;

impl Session {
    /// All of [`infer_core::Session::decode`].
    pub(super) fn run_pass(&mut self, batch: &Batch) -> Result<()> {
        self.begin();
        self.slots.check(batch, &self.limits, &self.capabilities)?;
        let undrawable =
            |entry: &Entry| entry.want() == Want::Token && self.seats[entry.slot() as usize].sampler.is_none();
        if let Some(index) = batch.entries().iter().position(undrawable) {
            return Err(Error::invalid_input(format!(
                "entry {index} of the batch wants a token, and no sampling was set for its sequence"
            )));
        }
        self.context.may_decode()?;
        let adapter = self.adapter_for(batch)?;
        self.set_adapter(adapter)?;
        self.place_draws(batch)?;
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
        self.find_drawn(batch)?;
        let vocab = self.limits.vocab;
        // Of all places, where any are looked at: rows lie one after the other.
        if batch.entries().iter().any(|entry| wants_row(entry) && !self.is_drawn(entry)) {
            self.context.find_logits(self.places.iter().copied(), vocab)?;
        }
        let logits = self.context.logits();
        let mut rows = (0_u32..).zip(logits.chunks_exact(vocab));
        let mut drawn = self.drawn.iter();
        for entry in batch.entries() {
            let seat = &mut self.seats[entry.slot() as usize];
            let mut shown = Rows::NONE;
            let place = if wants_row(entry) { rows.next() } else { None };
            if entry.want() == Want::Token && self.context.is_drawn(entry.slot()) {
                self.results.sampled.push(*drawn.next().expect("each was found"));
            } else if wants_row(entry) {
                let (number, row) = place.expect("there is a row for each place");
                if let Some(sampler) = &mut seat.sampler {
                    sampler.sample(row, entry.start() + entry.range().len(), &mut self.results.sampled)?;
                    sampler.top(row, &mut self.results.top)?;
                }
                if entry.want() == Want::Logits {
                    shown = number;
                }
            }
            self.results.end_entry(shown);
        }
        Ok(())
    }

    /// After a pass that failed: its sequences are as they were before, or spent.
    pub(super) fn take_back(&mut self, damage: Damage) {
        self.results.clear();
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
}

/// What a failed pass left in the cells of its sequences.
#[derive(Clone, Copy)]
pub(super) enum Damage {
    None,
    /// Some positions, which can be removed.
    Partial,
    /// The library was left by an exception: whatever it was doing is half done.
    Unknown,
}

fn wants_row(entry: &Entry) -> bool {
    matches!(entry.want(), Want::Token | Want::Logits)
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the pass was interrupted; no sequence has grown").with_backend(BACKEND)
}
