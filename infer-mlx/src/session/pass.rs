//! One forward pass: its steps, what is drawn from them; or nothing of it.

use super::{
    Session,
    feed::Feed,
    plan,
    rows::{Found, Shape, Wanted},
};
use crate::{
    DType, Scope,
    error::{BACKEND, error},
    step::{Part, Step},
};
use infer_core::{Batch, Error, ErrorKind, Result, Want};

/// Tokens that a step has at most where each has a row of logits: their memory should not count.
const SCORED: usize = 128;

impl Session {
    /// All of [`infer_core::Session::decode`].
    pub(super) fn run_pass(&mut self, batch: &Batch) -> Result<()> {
        self.begin();
        self.slots.check(batch, &self.limits, &self.capabilities)?;
        self.seats.check(batch)?;
        self.check_interrupt()?;
        self.running.extend(batch.entries().iter().map(|entry| (entry.slot(), entry.start())));
        // At once, and not when all is computed: what a device draws it draws as the samplers say.
        self.seats.accept(batch);
        if let Err(error) = self.attempt(batch) {
            self.take_back();
            return Err(error);
        }
        self.running.clear();
        self.seats.commit(batch);
        self.slots.commit(batch);
        Ok(())
    }

    /// Computes the batch, and draws. Keys and values count if all went well.
    fn attempt(&mut self, batch: &Batch) -> Result<()> {
        let mut feeds = self.feeds(batch)?;
        let mlx = self.model.mlx().clone();
        let scope = mlx.scope();
        let found = self.compute(&scope, &mut feeds);
        let info = self.model.info().clone();
        let drawn =
            found.and_then(|found| self.draw_all(batch, &mut feeds, &found).map_err(|error| error.with_model(&info)));
        for feed in feeds {
            let kv = &mut self.kvs[feed.slot as usize];
            if drawn.is_ok() { feed.growth.commit(kv) } else { feed.growth.discard(kv) }
        }
        drawn
    }

    /// After a pass that failed, or was left by a panic: everything is as it was before. What was written behind a sequence's end does not count.
    pub(super) fn take_back(&mut self) {
        self.results.clear();
        for (slot, len) in self.running.drain(..) {
            self.seats.truncate(slot, len);
        }
    }

    /// All steps of the pass. What they found lives in `scope`.
    fn compute<'p>(&self, scope: &'p Scope<'p>, feeds: &mut [Feed<'_>]) -> Result<Vec<Found<'p>>> {
        let counts: Vec<_> = feeds.iter().map(|feed| feed.tokens.len()).collect();
        let is_scored = feeds.iter().any(|feed| feed.want == Want::Score);
        let most = if is_scored { self.micro_batch.min(SCORED) } else { self.micro_batch };
        plan::steps(&counts, most).iter().map(|pieces| self.step(scope, feeds, pieces)).collect()
    }

    /// Computes one step: one graph, evaluated at once.
    fn step<'p>(&self, scope: &'p Scope<'p>, feeds: &mut [Feed<'_>], pieces: &[plan::Piece]) -> Result<Found<'p>> {
        self.check_interrupt()?;
        let wanted = Wanted::of(pieces, feeds);
        let (found, grown) = {
            // It ends before anything is evaluated: what nobody holds is given back, or written over, as soon as it was used.
            let inner = scope.nest();
            let mut feeds: Vec<_> = feeds.iter_mut().map(Some).collect();
            let parts = pieces.iter().map(|piece| {
                let feed = feeds[piece.entry].take().expect("an entry has one piece in a step");
                let kv = &self.kvs[feed.slot as usize];
                Part { kv, growth: &mut feed.growth, tokens: &feed.tokens[piece.range.clone()] }
            });
            let mut step = Step::new(&inner, &self.layout, parts);
            let decoder = self.model.decoder()?;
            let hidden = decoder.forward(&mut step);
            let found = wanted.find(hidden, decoder, self.rows());
            let is_empty = found.is_empty();
            let grown: Vec<_> = step.finish().into_iter().map(|grown| grown.keep(&inner, is_empty)).collect();
            (found.keep(&inner), grown)
        };
        scope.eval(found.arrays().chain(grown.iter().flat_map(|grown| grown.arrays())))?;
        for (piece, grown) in pieces.iter().zip(grown) {
            feeds[piece.entry].growth.grow(grown);
        }
        Ok(found)
    }

    fn rows(&self) -> Shape {
        // A device that has memory of its own has no numbers of 64 bits.
        let wide = if self.layout.copies() { DType::F32 } else { DType::F64 };
        Shape { vocab: self.limits.vocab, width: self.width, wide }
    }

    /// Draws the tokens that are wanted, and reads what else is.
    fn draw_all(&mut self, batch: &Batch, feeds: &mut [Feed<'_>], found: &[Found<'_>]) -> Result<()> {
        for (index, (entry, feed)) in batch.entries().iter().zip(feeds).enumerate() {
            let Self { seats, results, .. } = self;
            let position = entry.start() + entry.range().len();
            let row = found.iter().find_map(|found| found.logits(index)).transpose()?;
            let drawn = found.iter().find_map(|found| found.drawn(index)).transpose()?;
            match (seats.sampler_mut(entry.slot()), row, drawn) {
                (Some(sampler), Some(row), _) => results.draw(row, sampler, position)?,
                (Some(sampler), _, Some(drawn)) => results.take_drawn(drawn, sampler, position),
                _ => feed.error.take().into_iter().for_each(|error| results.fail(error)),
            }
            let shown = row.filter(|_| entry.want() == Want::Logits).map(|row| results.add_logits(row));
            results.end_entry(shown);
            let hidden = found.iter().find_map(|found| found.hidden(index)).transpose()?;
            let hidden = hidden.map(|hidden| results.add_hidden(hidden));
            results.end_hidden(hidden);
            // Before the first token of a sequence is nothing that could have said how probable it is.
            if entry.want() == Want::Score && entry.start() == 0 {
                results.scores_mut().push(0.0);
            }
            found.iter().try_for_each(|found| found.scores(index, results.scores_mut()))?;
            results.end_scores();
        }
        self.results.check_hidden().map_err(|error| error.with_backend(BACKEND))
    }
}

pub(super) fn cancelled() -> Error {
    error(ErrorKind::Cancelled, "the pass was interrupted; no sequence has grown")
}
