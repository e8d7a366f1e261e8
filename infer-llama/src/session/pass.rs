//! One forward pass: filled, run, its results found; or taken back.
//!
//! Most passes are one call of the library. What is scored, and what a hidden state is wanted of, is computed in calls of its own
//! before that: the library's rows are those of the last call, and rows of logits are read from where they lie.

use super::{Session, cut::vacate};
use crate::{error::BACKEND, raw::Pass};
use infer_core::{Batch, Entry, Error, ErrorKind, Result, Token, Want};
use std::sync::atomic::Ordering;

/// A sequence of the pass that is running.
#[derive(Clone, Copy)]
pub(super) struct Running {
    slot: u32,
    /// Its length before the pass.
    start: usize,
    /// Its last token, when that was taken out to be fed again.
    pub(super) again: Option<Token>,
}

/// What a failed pass left in the cells of its sequences.
#[derive(Clone, Copy)]
pub(super) enum Damage {
    None,
    /// Some positions, which can be removed.
    Partial,
    /// As that, by a call that did not come to its end. Where the memory cannot go back, it keeps one book of all sequences and writes the
    /// states afterwards: those of others may be wrong as well.
    Torn,
    /// The library was left by an exception: whatever it was doing is half done.
    Unknown,
}

/// How a call of the library failed, and what it left behind.
pub(super) type Failure = (Error, Damage);

impl Session {
    /// All of [`infer_core::Session::decode`].
    pub(super) fn run_pass(&mut self, batch: &Batch) -> Result<()> {
        self.begin();
        self.slots.check(batch, &self.limits, &self.answered)?;
        self.seats.check(batch)?;
        self.check_scores(batch)?;
        self.context.may_decode()?;
        let adapter = self.adapter_for(batch)?;
        self.set_adapter(adapter)?;
        self.place_draws(batch)?;
        let running = |entry: &Entry| Running { slot: entry.slot(), start: entry.start(), again: None };
        self.running.extend(batch.entries().iter().map(running));
        self.look_ahead(batch);
        let outcome = self.compute(batch);
        self.rejoin();
        if let Err((error, damage)) = outcome {
            self.take_back(damage);
            return Err(error);
        }
        self.seats.accept(batch);
        if let Err(error) = self.draw(batch) {
            self.take_back(Damage::Partial);
            return Err(error.with_model(self.model.info()));
        }
        for (index, entry) in batch.entries().iter().enumerate() {
            let slot = entry.slot();
            if self.running[index].again.is_some() {
                self.renew_last_cell(slot, entry.start());
            }
            self.cells.grow(slot, entry.range().len());
        }
        self.seats.commit(batch);
        self.slots.commit(batch);
        self.running.clear();
        Ok(())
    }

    fn compute(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.stored = false;
        if self.stop.load(Ordering::Relaxed) {
            return Err((cancelled(), Damage::None));
        }
        let wants = |want| batch.entries().iter().any(|entry| entry.want() == want);
        if wants(Want::Score) {
            self.score(batch)?;
        }
        if wants(Want::Embedding) {
            self.embed(batch)?;
        }
        self.batch.clear();
        self.places.clear();
        for entry in batch.entries() {
            if is_last(entry) {
                self.feed(entry, batch.tokens(entry), entry.start(), wants_row(entry));
            }
        }
        self.run()
    }

    /// Adds tokens of an entry to the native batch, the first of them at position `from`; with a row for the last one, if it is `wanted`.
    fn feed(&mut self, entry: &Entry, tokens: &[Token], from: usize, wanted: bool) {
        for (index, &token) in tokens.iter().enumerate() {
            self.feed_one(entry.slot(), token, from + index, wanted && index + 1 == tokens.len());
        }
    }

    pub(super) fn feed_one(&mut self, slot: u32, token: Token, position: usize, wanted: bool) {
        let position = i32::try_from(position).expect("a context has fewer than 2^31 positions");
        let place = self.batch.push(token.0.cast_signed(), position, slot, wanted);
        if wanted {
            self.places.push(place);
        }
    }

    /// Runs what the native batch holds, if anything, and says how it failed, if it did. What it left behind is the caller's
    /// business.
    pub(super) fn run(&mut self) -> Result<(), Failure> {
        if self.batch.len() == 0 {
            return Ok(());
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err((cancelled(), self.earlier()));
        }
        let pass = self.context.decode(&mut self.batch);
        self.ended(pass)
    }

    /// What earlier calls of this pass left, where the last one left nothing.
    fn earlier(&self) -> Damage {
        if self.stored { Damage::Partial } else { Damage::None }
    }

    fn ended(&mut self, pass: Result<Pass>) -> Result<(), Failure> {
        let failed = |kind, message: &str, code: i64| Error::new(kind, message).with_backend(BACKEND).with_code(code);
        match pass.map_err(|error| (error, Damage::Unknown))? {
            Pass::Done => {
                self.stored = true;
                Ok(())
            }
            Pass::NoRoom => {
                let message =
                    "no room in the KV cache for this pass; drop or truncate sequences, or use smaller batches";
                Err((failed(ErrorKind::OutOfCells, message, 1), self.earlier()))
            }
            Pass::Stopped => Err((cancelled(), Damage::Torn)),
            Pass::Invalid => {
                Err((failed(ErrorKind::Runtime, "the library calls the batch invalid", -1), self.earlier()))
            }
            Pass::Failed(code) => Err((
                failed(ErrorKind::Runtime, "the library failed in the middle of a pass", code.into()),
                Damage::Torn,
            )),
        }
    }

    /// Computes the entries that a hidden state is wanted of. Where hidden states are given the library gives one for every token,
    /// so all tokens but the last ones come first, by themselves.
    fn embed(&mut self, batch: &Batch) -> Result<(), Failure> {
        let entries = || batch.entries().iter().filter(|entry| entry.want() == Want::Embedding);
        let split = |entry| batch.tokens(entry).split_last().expect("an entry without tokens is refused");
        self.batch.clear();
        self.places.clear();
        for entry in entries() {
            self.feed(entry, split(entry).1, entry.start(), false);
        }
        self.run()?;
        self.batch.clear();
        for entry in entries() {
            let (&last, before) = split(entry);
            self.feed_one(entry.slot(), last, entry.start() + before.len(), true);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err((cancelled(), self.earlier()));
        }
        let results = &mut self.results;
        let pass = self.context.decode_hidden(&mut self.batch, |row| {
            results.add_hidden(row);
        });
        self.ended(pass)?;
        self.results.check_hidden().map_err(|error| (error.with_backend(BACKEND), Damage::Partial))?;
        let mut rows = 0..;
        for entry in batch.entries() {
            let row = if entry.want() == Want::Embedding { rows.next() } else { None };
            self.results.end_hidden(row);
        }
        Ok(())
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
            let mut shown = None;
            let place = if wants_row(entry) { rows.next() } else { None };
            if entry.want() == Want::Token && self.context.is_drawn(entry.slot()) {
                self.results.add_drawn(*drawn.next().expect("each was found"));
            } else if wants_row(entry) {
                let (number, row) = place.expect("there is a row for each place");
                if let Some(sampler) = self.seats.sampler_mut(entry.slot()) {
                    self.results.draw(row, sampler, entry.start() + entry.range().len())?;
                }
                shown = (entry.want() == Want::Logits).then_some(number);
            }
            self.results.end_entry(shown);
        }
        Ok(())
    }

    /// After a pass that failed: its sequences are as they were before, or spent.
    pub(super) fn take_back(&mut self, damage: Damage) {
        self.results.clear();
        if matches!(damage, Damage::Torn | Damage::Unknown) && !self.can_cut() {
            for (slot, _) in (0..).zip(0..self.limits.sequences) {
                self.spend(slot);
            }
            self.running.clear();
            return;
        }
        // One that is not done yet stays in the list: should a subscriber panic, the next call begins with it again.
        while let Some(&Running { slot, start, again }) = self.running.last() {
            let whole = match (damage, again) {
                (Damage::None, None) => true,
                (Damage::Unknown, _) => false,
                (_, Some(token)) => self.feed_again(slot, start, token),
                (Damage::Partial | Damage::Torn, None) => self.is_cut_to(slot, start),
            };
            self.seats.truncate(slot, start);
            if !whole {
                self.spend(slot);
            }
            self.running.pop();
        }
    }

    /// Removes what a pass has added to a sequence of `len` positions. Whether it is as it was.
    pub(super) fn is_cut_to(&mut self, slot: u32, len: usize) -> bool {
        self.context.remove(slot, len).unwrap_or(false) && self.is_intact(slot, len)
    }

    /// Gives up a sequence that is not what it should be.
    pub(super) fn spend(&mut self, slot: u32) {
        let Self { slots, context, seats, cells, .. } = self;
        vacate(context, seats, cells, slot);
        slots.spend(slot);
    }
}

/// Whether the entry is computed in the last call of a pass, with all others that nothing special is wanted of.
pub(super) fn is_last(entry: &Entry) -> bool {
    !matches!(entry.want(), Want::Score | Want::Embedding)
}

pub(super) fn wants_row(entry: &Entry) -> bool {
    matches!(entry.want(), Want::Token | Want::Logits)
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the pass was interrupted; no sequence has grown").with_backend(BACKEND)
}
