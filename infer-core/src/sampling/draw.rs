//! The draw: which tokens are left, and which of them a random number means.

use super::{
    chain::{Chain, Left},
    dry,
    row::{BLOCK, Softmax, block_sum, exp, runtime},
    truncation::{self, Candidate},
    uniform::Chances,
};
use crate::{Error, Result, Sampled, Sampling, Token};
use std::cell::Cell;

/// Memory that draws work in, one a thread: a sampler of its own for each of many sequences costs next to nothing, and
/// what one draw has brought into the caches the next one finds there.
#[derive(Default)]
pub(super) struct Scratch {
    /// The row as `f32`, where it is not.
    pub(super) wide: Vec<f32>,
    /// The row with bias and penalties.
    pub(super) adjusted: Vec<f32>,
    pub(super) dry: dry::Work,
    pub(super) pool: Pool,
}

impl Scratch {
    /// Lends the thread's scratch to `work`.
    pub(super) fn with<R>(work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        thread_local! {
            static SCRATCH: Cell<Scratch> = Cell::default();
        }
        // Where the thread is ending and has none any more, a new one serves.
        let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
        let result = work(&mut scratch);
        let _ = SCRATCH.try_with(|place| place.set(scratch));
        result
    }
}

/// The tokens that may be drawn.
#[derive(Default)]
pub(super) struct Pool {
    list: Vec<Candidate>,
    spare: Vec<Candidate>,
    /// exp of each candidate.
    weights: Vec<f32>,
    /// Σ exp of each block of the row.
    sums: Vec<f64>,
}

/// A row with bias and penalties, and its largest logit, which is finite.
#[derive(Clone, Copy)]
pub(super) struct Peaked<'r> {
    pub(super) row: &'r [f32],
    pub(super) peak: f32,
    /// Σ exp(logit − peak), where it is known already.
    pub(super) sum: Option<f64>,
}

impl Peaked<'_> {
    pub(super) fn sum(&self) -> f64 {
        let add = || self.row.chunks(BLOCK).map(|block| block_sum(block, self.peak, 1.0)).sum();
        self.sum.unwrap_or_else(add)
    }
}

impl Pool {
    /// The token that a random number means: tokens stand in the order of their ids, each as wide as its probability.
    ///
    /// That order stays when two nearly equal logits change places, as the order by probability would not: a small
    /// change of the logits moves each token's share a little, and most draws not at all.
    pub(super) fn draw(&mut self, logits: Peaked<'_>, sampling: &Sampling, chances: Chances) -> Result<Token> {
        let left = Chain::new(logits, &mut self.list, &mut self.spare).run(sampling, chances.xtc);
        let id = match left {
            Left::All => self.draw_any(logits, scale(sampling.temperature), chances.token),
            Left::Listed { peak, is_prefix } => match self.temperature(peak, sampling) {
                0.0 => self.best().map(Candidate::id),
                temperature => {
                    truncation::sort_by_id(logits.row, &mut self.list, is_prefix);
                    self.draw_listed(peak, scale(temperature), chances.token)
                }
            },
        };
        id.map(Token)
    }

    /// Every token that can be drawn and its probability, the most probable first.
    pub(super) fn distribution(
        &mut self,
        logits: Peaked<'_>,
        sampling: &Sampling,
        chance: f32,
        out: &mut Vec<(Token, f32)>,
    ) -> Result<()> {
        let peak = match Chain::new(logits, &mut self.list, &mut self.spare).run(sampling, chance) {
            Left::Listed { peak, .. } => peak,
            Left::All => {
                truncation::at_least(logits.row, f32::NEG_INFINITY, &mut self.list);
                logits.peak
            }
        };
        let temperature = self.temperature(peak, sampling);
        if temperature == 0.0 {
            out.push((Token(self.best()?.id()), 1.0));
            return Ok(());
        }
        self.list.sort_unstable_by(|a, b| b.cmp(a));
        let total = positive(self.weigh(peak, scale(temperature)))?;
        let drawable = self.list.iter().zip(&self.weights).filter(|&(_, &weight)| weight > 0.0);
        out.extend(drawable.map(|(candidate, &weight)| (Token(candidate.id()), (f64::from(weight) / total) as f32)));
        Ok(())
    }

    /// Appends the `most` best tokens of the row with their log-probabilities, the best first.
    pub(super) fn top(&mut self, row: &[f32], model: Softmax, most: usize, out: &mut Vec<Sampled>) {
        // At once, so that no later one allocates.
        self.list.clear();
        self.list.reserve(row.len());
        truncation::top_k(row, most, &mut self.list);
        self.list.sort_unstable_by(|a, b| b.cmp(a));
        let sampled = |candidate: &Candidate| Sampled::new(Token(candidate.id()), model.logprob(candidate.logit()));
        out.extend(self.list.iter().map(sampled).filter(|top| top.logprob > f32::NEG_INFINITY));
    }

    /// The temperature for the listed tokens: the one that is set, or where it moves, by how much of the entropy that so many
    /// tokens can have these have.
    fn temperature(&self, peak: f32, sampling: &Sampling) -> f32 {
        let Sampling { temperature, dynatemp_range: range, dynatemp_exponent: exponent, .. } = *sampling;
        if range == 0.0 || self.list.len() < 2 {
            return temperature;
        }
        let (sum, expected) = truncation::moments(&self.list, peak);
        let share = (sum.ln() - expected) / (self.list.len() as f64).ln();
        // Rounding must not make it more than everything, nor less than nothing.
        let moved = share.clamp(0.0, 1.0).powf(f64::from(exponent)) as f32;
        let least = (temperature - range).max(0.0);
        least + (temperature + range - least) * moved
    }

    fn best(&self) -> Result<Candidate> {
        self.list.iter().max().copied().ok_or_else(no_number)
    }

    fn draw_listed(&mut self, peak: f32, scale: f32, uniform: f32) -> Result<u32> {
        let target = positive(self.weigh(peak, scale))? * f64::from(uniform);
        Ok(self.list[walk(self.weights.iter().copied(), target)].id())
    }

    /// Fills `weights`, and returns their sum.
    fn weigh(&mut self, peak: f32, scale: f32) -> f64 {
        self.weights.clear();
        self.weights.reserve(self.list.capacity());
        self.weights.extend(self.list.iter().map(|candidate| exp((candidate.logit() - peak) * scale)));
        self.weights.iter().map(|&weight| f64::from(weight)).sum()
    }

    fn draw_any(&mut self, Peaked { row, peak, .. }: Peaked<'_>, scale: f32, uniform: f32) -> Result<u32> {
        self.sums.clear();
        self.sums.extend(row.chunks(BLOCK).map(|block| block_sum(block, peak, scale)));
        let mut target = positive(self.sums.iter().sum())? * f64::from(uniform);
        // A uniform number is below 1 by 2⁻²⁴ at least, so the target lies within the sums whatever their rounding.
        let within = |sum: &f64| {
            let here = target < *sum;
            target -= if here { 0.0 } else { *sum };
            here
        };
        let index = self.sums.iter().position(within).unwrap_or_default();
        let block = row.chunks(BLOCK).nth(index).unwrap_or_default();
        let at = walk(block.iter().map(|&logit| exp((logit - peak) * scale)), target);
        Ok((index * BLOCK + at) as u32)
    }
}

/// What differences of logits are multiplied with. A temperature so small that its inverse overflows leaves nothing but
/// the peak all the same; infinity times a difference of 0 would not.
fn scale(temperature: f32) -> f32 {
    temperature.recip().min(f32::MAX)
}

fn positive(total: f64) -> Result<f64> {
    if total > 0.0 && total.is_finite() {
        return Ok(total);
    }
    Err(no_number())
}

fn no_number() -> Error {
    runtime("with its bias or penalties a logit is not a number".into())
}

/// The place where the weights add up to more than `target`; where rounding has the target beyond them all, the last
/// with any weight. So a token without weight is never drawn.
fn walk(weights: impl Iterator<Item = f32>, target: f64) -> usize {
    let (mut sum, mut chosen) = (0.0, 0);
    for (at, weight) in weights.enumerate().filter(|&(_, weight)| weight > 0.0) {
        chosen = at;
        sum += f64::from(weight);
        if sum > target {
            break;
        }
    }
    chosen
}
