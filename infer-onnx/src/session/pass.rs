//! One forward pass: its runs, what is drawn from them; or nothing of it.

use super::{Session, plan, row::Logits};
use crate::forward::Call;
use infer_core::{Batch, Entry, Result, Token, Want};
use std::ops::Range;

/// What a pass works in, kept for its memory.
#[derive(Default)]
pub(super) struct Work {
    /// The slots that get one token, with their entries, by slot.
    single: Vec<(u32, usize)>,
    slots: Vec<u32>,
    runs: Vec<Range<u32>>,
    tokens: Vec<Token>,
    past: Vec<usize>,
    /// The logits of runs of which a row is wanted.
    logits: Vec<Logits>,
    /// Entry → its row, and which of `logits` it is in.
    places: Vec<Option<(usize, usize)>>,
}

impl Session {
    /// All of [`infer_core::Session::decode`].
    pub(super) fn run_pass(&mut self, batch: &Batch) -> Result<()> {
        self.begin();
        self.slots.check(batch, &self.limits, &self.capabilities)?;
        self.seats.check(batch)?;
        let mut work = std::mem::take(&mut self.work);
        let outcome = self
            .compute(batch, &mut work)
            .and_then(|()| self.draw_all(batch, &work).map_err(|error| error.with_model(&self.info)));
        work.logits.clear();
        self.work = work;
        if let Err(error) = outcome {
            self.take_back(batch);
            return Err(error);
        }
        self.forward.kv.commit();
        self.seats.commit(batch);
        self.slots.commit(batch);
        Ok(())
    }

    fn compute(&mut self, batch: &Batch, work: &mut Work) -> Result<()> {
        work.logits.clear();
        work.places.clear();
        work.places.resize(batch.len(), None);
        // First of all: a row that is bridged has its token written behind what it held before this pass.
        self.compute_single(batch, work)?;
        for (index, entry) in batch.entries().iter().enumerate() {
            if entry.want() != Want::Score && entry.range().len() > 1 {
                let logits = self.compute_many(entry.slot(), entry.start(), batch.tokens(entry))?;
                if wants_row(entry) {
                    work.places[index] = Some((work.logits.len(), logits.rows() - 1));
                    work.logits.push(logits);
                }
            }
        }
        for entry in batch.entries() {
            if entry.want() == Want::Score {
                self.score(entry, batch.tokens(entry))?;
            }
            self.results.end_scores();
        }
        Ok(())
    }

    /// Computes tokens of one sequence behind its first `past` positions, in as many runs as it takes. The logits of the last one.
    fn compute_many(&mut self, slot: u32, mut past: usize, mut tokens: &[Token]) -> Result<Logits> {
        loop {
            let (these, rest) = tokens.split_at(tokens.len().min(self.forward.most_tokens(past)));
            let logits = self.forward.run(&Call { slots: slot..slot + 1, past: &[past], tokens: these })?;
            if rest.is_empty() {
                return Ok(logits);
            }
            past += these.len();
            tokens = rest;
        }
    }

    /// Computes the entries of one token, those that lie side by side together.
    fn compute_single(&mut self, batch: &Batch, work: &mut Work) -> Result<()> {
        let Work { single, slots, runs, tokens, past, logits, places } = work;
        let entries = batch.entries().iter().enumerate();
        let one = entries.filter(|(_, entry)| entry.want() != Want::Score && entry.range().len() == 1);
        single.clear();
        single.extend(one.map(|(index, entry)| (entry.slot(), index)));
        single.sort_unstable();
        slots.clear();
        slots.extend(single.iter().map(|&(slot, _)| slot));
        if self.forward.batches() {
            // A row that is full has no place for a token in vain, and in a long one it has much to look at.
            let most = self.limits.context.min(plan::LONG);
            plan::runs(slots, |slot| self.slots.len(slot) < most, runs);
        } else {
            runs.clear();
            runs.extend(slots.iter().map(|&slot| slot..slot + 1));
        }
        let mut rest = &single[..];
        for run in runs.iter() {
            let (these, others) = rest.split_at(rest.partition_point(|&(slot, _)| slot < run.end));
            rest = others;
            tokens.clear();
            // A row that is bridged gets any token.
            tokens.resize(run.len(), Token(0));
            for &(slot, index) in these {
                tokens[(slot - run.start) as usize] = batch.tokens(&batch.entries()[index])[0];
            }
            past.clear();
            past.extend(run.clone().map(|slot| self.slots.len(slot)));
            let found = self.forward.run(&Call { slots: run.clone(), past, tokens })?;
            let wanted = these.iter().filter(|&&(_, index)| wants_row(&batch.entries()[index]));
            let mut any = false;
            for &(slot, index) in wanted {
                places[index] = Some((logits.len(), (slot - run.start) as usize));
                any = true;
            }
            if any {
                logits.push(found);
            }
        }
        Ok(())
    }

    /// Feeds the samplers, and draws the tokens that are wanted.
    fn draw_all(&mut self, batch: &Batch, work: &Work) -> Result<()> {
        self.seats.accept(batch);
        let Self { seats, results, .. } = self;
        for (entry, place) in batch.entries().iter().zip(&work.places) {
            let row = place.map(|(run, row)| work.logits[run].row(row)).transpose()?;
            if let (Some(row), Some(sampler)) = (row, seats.sampler_mut(entry.slot())) {
                row.draw(sampler, entry.start() + entry.range().len(), results)?;
            }
            let shown = row.filter(|_| entry.want() == Want::Logits).map(|row| row.add_to(results));
            results.end_entry(shown);
        }
        Ok(())
    }

    /// After a pass that failed: everything is as it was before. What was written behind a sequence's end does not count.
    fn take_back(&mut self, batch: &Batch) {
        self.results.clear();
        self.forward.kv.discard();
        self.seats.take_back(batch);
    }
}

fn wants_row(entry: &Entry) -> bool {
    matches!(entry.want(), Want::Token | Want::Logits)
}
