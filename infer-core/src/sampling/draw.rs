//! The draw: which tokens are left, and which of them a random number means.

use super::{
    row::{BLOCK, block_sum, exp, runtime},
    truncation::{self, Candidate},
};
use crate::{Result, Sampling, Token};
use std::cell::Cell;

/// Memory that draws work in, one a thread: a sampler of its own for each of many sequences costs next to nothing, and
/// what one draw has brought into the caches the next one finds there.
#[derive(Default)]
pub(super) struct Scratch {
    /// The row as `f32`, where it is not.
    pub(super) wide: Vec<f32>,
    /// The row with bias and penalties.
    pub(super) adjusted: Vec<f32>,
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
    /// exp of each candidate.
    weights: Vec<f32>,
    /// Σ exp of each block of the row.
    sums: Vec<f64>,
}

/// Where the tokens are that may be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// In the row: all of it.
    All,
    /// In the list.
    Listed,
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
    fn sum(&self) -> f64 {
        let add = || self.row.chunks(BLOCK).map(|block| block_sum(block, self.peak, 1.0)).sum();
        self.sum.unwrap_or_else(add)
    }
}

impl Pool {
    /// The token that `uniform`, in `[0, 1)`, means: tokens stand in the order of their ids, each as wide as its
    /// probability.
    ///
    /// That order stays when two nearly equal logits change places, as the order by probability would not: a small
    /// change of the logits moves each token's share a little, and most draws not at all.
    pub(super) fn draw(&mut self, logits: Peaked<'_>, sampling: &Sampling, uniform: f32) -> Result<Token> {
        let scale = scale(sampling.temperature);
        let id = match self.truncate(logits, sampling) {
            Left::All => self.draw_any(logits, scale, uniform),
            Left::Listed => self.draw_listed(logits, scale, uniform),
        };
        id.map(Token)
    }

    /// Every token that can be drawn and its probability, the most probable first.
    pub(super) fn distribution(
        &mut self,
        logits: Peaked<'_>,
        sampling: &Sampling,
        out: &mut Vec<(Token, f32)>,
    ) -> Result<()> {
        if self.truncate(logits, sampling) == Left::All {
            truncation::at_least(logits.row, f32::NEG_INFINITY, &mut self.list);
        }
        self.list.sort_unstable_by(|a, b| b.cmp(a));
        let total = positive(self.weigh(logits.peak, scale(sampling.temperature)))?;
        let drawable = self.list.iter().zip(&self.weights).filter(|&(_, &weight)| weight > 0.0);
        out.extend(drawable.map(|(candidate, &weight)| (Token(candidate.id()), (f64::from(weight) / total) as f32)));
        Ok(())
    }

    /// Top-k, top-p and min-p.
    fn truncate(&mut self, logits: Peaked<'_>, sampling: &Sampling) -> Left {
        let Sampling { top_k, top_p, min_p, .. } = *sampling;
        let (Peaked { row, peak, .. }, list) = (logits, &mut self.list);
        let (by_k, by_p) = ((1..row.len()).contains(&top_k), top_p < 1.0);
        // Off, at 0, the logarithm is negative infinity, which every logit reaches.
        let least = peak + min_p.ln();
        if by_k {
            truncation::top_k(row, top_k, list);
            if by_p {
                let sum: f64 = list.iter().map(|candidate| f64::from(exp(candidate.logit() - peak))).sum();
                truncation::top_mass(list, peak, sum * f64::from(top_p));
            }
            truncation::keep_at_least(list, least);
        } else if by_p {
            truncation::at_least(row, least.max(peak - reach(row.len(), top_p)), list);
            truncation::top_mass(list, peak, logits.sum() * f64::from(top_p));
        } else if min_p > 0.0 {
            truncation::at_least(row, least, list);
        } else {
            return Left::All;
        }
        Left::Listed
    }

    fn draw_listed(&mut self, logits: Peaked<'_>, scale: f32, uniform: f32) -> Result<u32> {
        truncation::sort_by_id(logits.row, &mut self.list);
        let target = positive(self.weigh(logits.peak, scale))? * f64::from(uniform);
        Ok(self.list[walk(self.weights.iter().copied(), target)].id())
    }

    /// Fills `weights`, and returns their sum.
    fn weigh(&mut self, peak: f32, scale: f32) -> f64 {
        self.weights.clear();
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

/// How far below the peak a token of the nucleus can be: were all `vocab` tokens further down, together they would not
/// make up the 1 − p of the mass that is left out.
fn reach(vocab: usize, top_p: f32) -> f32 {
    (vocab as f32 / (1.0 - top_p)).ln()
}

fn positive(total: f64) -> Result<f64> {
    if total > 0.0 && total.is_finite() {
        return Ok(total);
    }
    Err(runtime("with its bias or penalties a logit is not a number".into()))
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
