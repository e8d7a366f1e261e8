//! Tokens that are drawn where the logits are computed: which, and by what.

use super::{Session, pass::is_last};
use crate::{
    Model,
    error::BACKEND,
    raw::{self, DrawInputs, DrawShape},
};
use infer_core::{Batch, Entry, Error, ErrorKind, Result, Sampled, Sampling, Token, Want, sampling::Sampler};

/// More tokens than this are not sorted there.
const MOST_CANDIDATES: usize = 1024;
/// So that another top_k need not make another graph.
const FEWEST_CANDIDATES: usize = 64;

impl Session {
    /// Whether the token of this entry is drawn where its logits are computed.
    pub(super) fn is_drawn(&self, entry: &Entry) -> bool {
        entry.want() == Want::Token && self.context.is_drawn(entry.slot())
    }

    /// Before a pass: has each token drawn where it can be. A sequence that is not in the batch, or wants nothing, stays as it is:
    /// a change is dear.
    pub(super) fn place_draws(&mut self, batch: &Batch) -> Result<()> {
        if !self.capabilities.device_sampling {
            return Ok(());
        }
        let (vocab, filters) = (self.limits.vocab, has_filters(&self.model));
        for entry in batch.entries().iter().filter(|entry| entry.want() != Want::Nothing) {
            let (slot, position) = (entry.slot(), entry.start() + entry.range().len());
            let sampler = self.seats.sampler(slot).filter(|_| entry.want() == Want::Token);
            let draw = sampler
                .and_then(|sampler| Some((shape(sampler.sampling(), vocab, filters)?, inputs(sampler, position))));
            self.context.set_draw(slot, draw.map(|(shape, _)| shape))?;
            if let Some((_, inputs)) = draw {
                self.context.set_draw_inputs(slot, inputs)?;
            }
        }
        Ok(())
    }

    /// After a pass: finds what was drawn, entry by entry.
    pub(super) fn find_drawn(&mut self, batch: &Batch) -> Result<()> {
        self.drawn.clear();
        if !self.capabilities.device_sampling {
            return Ok(());
        }
        let mut last = 0;
        for entry in batch.entries().iter().filter(|entry| is_last(entry)) {
            last += entry.range().len();
            if self.is_drawn(entry) {
                let place = i32::try_from(last - 1).expect("a batch is smaller than 2^31");
                let (token, logprob) = self.context.drawn(place)?;
                if !logprob.is_finite() {
                    let message = "a logit is not a number or infinite: the device drew no token";
                    return Err(Error::new(ErrorKind::Runtime, message).with_backend(BACKEND));
                }
                self.drawn.push(Sampled::new(Token(token), logprob));
            }
        }
        Ok(())
    }
}

/// Whether the device of this model can draw in all the ways there are. Asked before anything is computed.
pub(super) fn can_draw(model: &Model, context: &mut raw::Context, vocab: usize) -> Result<bool> {
    let filters = has_filters(model);
    let candidates = if filters { candidates(FEWEST_CANDIDATES, vocab) } else { 0 };
    let warm = DrawShape::Warm { min_p: filters, candidates };
    for shape in [Some(DrawShape::Greedy), Some(warm), None] {
        match context.set_draw(0, shape) {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                tracing::warn!("tokens of {} are drawn on the host: {error}", model.info().description);
                context.set_draw(0, None)?;
                return Ok(false);
            }
            outcome => outcome?,
        }
    }
    Ok(true)
}

/// Whether top_k and min_p are drawn in the graph as well. At the pinned version such a graph ends the process on Vulkan's driver in
/// software, although each operation is said to be there; on other devices it was not tried.
fn has_filters(model: &Model) -> bool {
    model.raw().door().variant() == "cpu"
}

/// How this sampling is drawn in the graph, with filters if it has them; `None` where it is not.
fn shape(sampling: &Sampling, vocab: usize, filters: bool) -> Option<DrawShape> {
    // Whatever it has beside these, also what is not thought of here, is the host's.
    let Sampling { temperature, top_k, min_p, seed, penalty_window, .. } = *sampling;
    let plain = Sampling::default().with_temperature(temperature).with_seed(seed).with_penalty_window(penalty_window);
    if *sampling != plain.with_top_k(top_k).with_min_p(min_p) {
        return None;
    }
    if sampling.is_greedy() {
        return Some(DrawShape::Greedy);
    }
    let by_k = (1..vocab).contains(&top_k);
    if (by_k && top_k > MOST_CANDIDATES) || (!filters && (by_k || min_p > 0.0)) {
        return None;
    }
    Some(DrawShape::Warm { min_p: min_p > 0.0, candidates: if by_k { candidates(top_k, vocab) } else { 0 } })
}

/// How many tokens the top_k are looked for among.
fn candidates(top_k: usize, vocab: usize) -> u32 {
    let many = top_k.next_power_of_two().max(FEWEST_CANDIDATES).min(vocab);
    u32::try_from(many).expect("it is 1,024 at most")
}

fn inputs(sampler: &Sampler, position: usize) -> DrawInputs {
    let Sampling { temperature, top_k, min_p, .. } = *sampler.sampling();
    DrawInputs {
        uniform: sampler.uniform(position),
        // As the host has it: a temperature so small that its inverse overflows leaves the largest all the same.
        scale: if temperature == 0.0 { 1.0 } else { temperature.recip().min(f32::MAX) },
        least: min_p.ln(),
        top_k: u32::try_from(top_k).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_samplings_are_drawn_there_and_others_are_not() {
        let warm = || Sampling::default().with_temperature(0.8).with_seed(3);
        let drawn = |sampling: &Sampling| shape(sampling, 50_000, true);
        assert_eq!(drawn(&Sampling::greedy()), Some(DrawShape::Greedy));
        assert_eq!(drawn(&warm()), Some(DrawShape::Warm { min_p: false, candidates: 0 }));
        assert_eq!(drawn(&warm().with_min_p(0.1)), Some(DrawShape::Warm { min_p: true, candidates: 0 }));
        let same = [1, 40, 64].map(|top_k| drawn(&warm().with_top_k(top_k)));
        assert_eq!(same, [Some(DrawShape::Warm { min_p: false, candidates: 64 }); 3], "one graph for all of them");
        assert_eq!(drawn(&warm().with_top_k(65)), Some(DrawShape::Warm { min_p: false, candidates: 128 }));
        assert_eq!(drawn(&warm().with_top_k(50_000)), drawn(&warm()), "all are none");
        assert_eq!(shape(&warm().with_top_k(5), 30, true), Some(DrawShape::Warm { min_p: false, candidates: 30 }));
        for host in [
            warm().with_top_p(0.9),
            warm().with_top_k(1025),
            warm().with_presence_penalty(0.5),
            warm().with_typical_p(0.5),
            warm().with_logprobs(2),
            Sampling::greedy().with_logit_bias(Token(1), 1.0),
        ] {
            assert_eq!(drawn(&host), None, "{host:?}");
        }
        let without_filters = |sampling: &Sampling| shape(sampling, 50_000, false);
        assert_eq!(without_filters(&warm()), drawn(&warm()));
        assert_eq!(without_filters(&warm().with_top_k(40)), None);
        assert_eq!(without_filters(&warm().with_min_p(0.1)), None);
        assert_eq!(without_filters(&Sampling::greedy().with_top_k(40)), Some(DrawShape::Greedy), "it leaves one");
    }
}
