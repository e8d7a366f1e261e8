//! Passes over a row of logits. They are written so that compilers make vector code of them, and add up in an order
//! that does not depend on the machine.

use crate::{Error, ErrorKind, Result};

/// A row is summed by blocks of this many logits: in `f32` within a block, in `f64` over blocks.
pub(super) const BLOCK: usize = 256;
const LANES: usize = 8;

/// The largest logit of a row, and the first token that has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    pub(super) logit: f32,
    pub(super) at: usize,
}

impl Peak {
    /// `None` where all logits are negative infinity. Those that are not a number are passed over.
    pub(super) fn of(row: &[f32]) -> Option<Self> {
        let mut peak = Running::default();
        row.chunks(BLOCK).enumerate().for_each(|(index, block)| peak.raise(index, block_max(block)));
        peak.find(row)
    }
}

/// The largest logit so far, and the block it is in.
struct Running {
    logit: f32,
    block: usize,
}

impl Default for Running {
    fn default() -> Self {
        Self { logit: f32::NEG_INFINITY, block: 0 }
    }
}

impl Running {
    fn raise(&mut self, block: usize, max: f32) {
        if max > self.logit {
            *self = Self { logit: max, block };
        }
    }

    fn find(self, row: &[f32]) -> Option<Peak> {
        let Self { logit, block } = self;
        if logit == f32::NEG_INFINITY {
            return None;
        }
        let at = row[block * BLOCK..].iter().position(|&other| other == logit)?;
        Some(Peak { logit, at: block * BLOCK + at })
    }
}

/// A row as a distribution: what [`Peak`] has, and the sum that makes probabilities of logits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Softmax {
    pub(super) peak: Peak,
    /// Σ exp(logit − peak). Where the peak is positive infinity: how many logits are.
    pub(super) sum: f64,
}

impl Softmax {
    /// One pass over the row.
    ///
    /// # Errors
    /// [`Runtime`](ErrorKind::Runtime) for a logit that is not a number, and where all are negative infinity.
    pub(super) fn of(row: &[f32]) -> Result<Self> {
        let mut peak = Running::default();
        let mut sum = 0.0;
        for (index, block) in row.chunks(BLOCK).enumerate() {
            let before = peak.logit;
            peak.raise(index, block_max(block));
            match peak.logit {
                f32::INFINITY => break,
                // Differences from negative infinity are not numbers; the block has nothing to add.
                f32::NEG_INFINITY if block.iter().all(|&logit| logit == f32::NEG_INFINITY) => {}
                max => {
                    if max > before {
                        sum *= f64::from(exp(before - max));
                    }
                    sum += block_sum(block, max, 1.0);
                }
            }
        }
        let infinite = peak.logit == f32::INFINITY;
        // One logit that is not a number makes the sum not a number: no pass of its own is needed to find it.
        if (infinite || sum.is_nan())
            && let Some(token) = row.iter().position(|logit| logit.is_nan())
        {
            return Err(no_number(row, token));
        }
        let Some(peak) = peak.find(row) else {
            return Err(runtime("every logit is negative infinity: there is no token to draw".into()));
        };
        if infinite {
            sum = row.iter().filter(|&&logit| logit == f32::INFINITY).count() as f64;
        }
        Ok(Self { peak, sum })
    }

    /// The natural logarithm of the probability of a logit of this row.
    pub(super) fn logprob(&self, logit: f32) -> f32 {
        let below = if logit == self.peak.logit { 0.0 } else { f64::from(logit) - f64::from(self.peak.logit) };
        (below - self.sum.ln()) as f32
    }
}

/// Of a row in which the logit of `first` is no number, and those of maybe more.
fn no_number(row: &[f32], first: usize) -> Error {
    let count = row.iter().filter(|logit| logit.is_nan()).count();
    runtime(format!(
        "the logit of token {first} is not a number (NaN), as {count} of {} are not: weights are damaged, or numbers became too large for the \
         format that the model computes in; get its files again, or try it in another format (bfloat16, 32 bits) or on another backend",
        row.len()
    ))
}

pub(super) fn runtime(message: String) -> Error {
    Error::new(ErrorKind::Runtime, message)
}

/// The largest number; what is none is passed over.
fn block_max(block: &[f32]) -> f32 {
    let larger = |max: f32, logit: f32| if logit > max { logit } else { max };
    let (chunks, rest) = block.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, logit);
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |max, &logit| larger(max, logit))
}

/// Σ exp((logit − max) × scale), for logits up to `max`.
#[inline(always)]
pub(super) fn block_sum(block: &[f32], max: f32, scale: f32) -> f64 {
    sum_of(block, |logit| exp((logit - max) * scale))
}

#[inline(always)]
fn sum_of(block: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let (chunks, rest) = block.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane += term(logit);
        }
    }
    let rest: f32 = rest.iter().map(|&logit| term(logit)).sum();
    f64::from(lanes.iter().sum::<f32>() + rest)
}

/// The standard deviation of the logits, those of negative infinity left out. `peak` is the largest of them; infinity where
/// the differences overflow.
pub(super) fn deviation(row: &[f32], peak: f32) -> f32 {
    fn over(row: &[f32], term: impl Fn(f32) -> f32) -> f64 {
        let counted = |logit: f32| if logit > f32::NEG_INFINITY { term(logit) } else { 0.0 };
        row.chunks(BLOCK).map(|block| sum_of(block, counted)).sum()
    }
    let count = over(row, |_| 1.0);
    let mean = (over(row, |logit| logit - peak) / count) as f32;
    let variance = over(row, |logit| (logit - peak - mean) * (logit - peak - mean)) / count;
    if variance.is_nan() { f32::INFINITY } else { variance.sqrt() as f32 }
}

/// eˣ for x up to 0, within 2 units in the last place; 0 below −87.7. What is not a number stays so.
///
/// The standard library's goes through the platform's C library: it is not the same everywhere and is not vectorised.
/// Here x = n ln 2 + r with |r| ≤ ln 2 / 2, the reduction in two steps as W. Cody and W. Waite have it (*Software Manual
/// for the Elementary Functions*, 1980), and eʳ = 1 + r + r² p(r), p through five Chebyshev nodes.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    /// Adding it leaves the nearest integer in the low bits of the significand.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts, the first with few bits, so that its product with an integer is exact.
    const LN_2: (f32, f32) = (0.693_359_4, -2.121_944_4e-4);
    const P: [f32; 5] = [0.5, 1.666_657_7e-1, 4.166_655_4e-2, 8.363_203e-3, 1.392_621_3e-3];
    // From here on the power of two is that with all exponent bits 0: the number 0. A branch would prevent vector code.
    let x = if x < -88.0 { -88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2.0 - n * LN_2.1;
    let p = (((P[4] * r + P[3]) * r + P[2]) * r + P[1]) * r + P[0];
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (p * r * r + r + 1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        let mut worst = 0;
        for step in 0..=873_000 {
            let x = -(step as f32) * 1e-4;
            let exact = f64::from(x).exp() as f32;
            worst = worst.max(exp(x).to_bits().abs_diff(exact.to_bits()));
        }
        assert!(worst <= 2, "{worst} units");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!((exp(-87.7), exp(-1e30), exp(f32::NEG_INFINITY)), (0.0, 0.0, 0.0));
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn the_peak_is_the_first_of_equals() {
        let mut row = vec![0.0; 3 * BLOCK + 5];
        (row[700], row[300], row[301]) = (2.0, 2.0, 2.0);
        assert_eq!(Peak::of(&row).map(|peak| (peak.at, peak.logit)), Some((300, 2.0)));
        assert_eq!(Softmax::of(&row).unwrap().peak.at, 300);
        assert!(Peak::of(&[f32::NEG_INFINITY; 9]).is_none());
        assert!(Peak::of(&[]).is_none());
    }

    #[test]
    fn what_is_not_a_number_is_found_wherever_it_is() {
        for len in [1, 7, 8, 9, BLOCK, BLOCK + 1, 3 * BLOCK] {
            for at in [0, len / 2, len - 1] {
                for other in [0.0, f32::NEG_INFINITY, f32::INFINITY] {
                    let mut row = vec![other; len];
                    row[at] = f32::NAN;
                    let error = Softmax::of(&row).unwrap_err();
                    let expected = format!("the logit of token {at} is not a number (NaN), as 1 of {len} are not: ");
                    assert!(error.to_string().starts_with(&expected), "of {len}, {other}: {error}");
                }
            }
        }
    }

    #[test]
    fn infinities() {
        let error = Softmax::of(&[f32::NEG_INFINITY; 2 * BLOCK]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Runtime);
        assert!(error.to_string().contains("negative infinity"), "{error}");
        let mut row = vec![f32::NEG_INFINITY; 2 * BLOCK];
        (row[BLOCK], row[BLOCK + 1]) = (1.0, 1.0);
        let softmax = Softmax::of(&row).unwrap();
        assert!((softmax.logprob(1.0) - 0.5f32.ln()).abs() < 1e-6);
        assert_eq!(softmax.logprob(f32::NEG_INFINITY), f32::NEG_INFINITY);
        (row[3], row[9]) = (f32::INFINITY, f32::INFINITY);
        let softmax = Softmax::of(&row).unwrap();
        assert_eq!((softmax.peak.at, softmax.sum), (3, 2.0));
        assert!((softmax.logprob(f32::INFINITY) - 0.5f32.ln()).abs() < 1e-6);
        assert_eq!(softmax.logprob(1.0), f32::NEG_INFINITY);
    }

    #[test]
    fn a_deviation_passes_over_what_is_forbidden() {
        let mut row = vec![f32::NEG_INFINITY; BLOCK + 9];
        (row[0], row[BLOCK], row[BLOCK + 8]) = (1.0, 3.0, 5.0);
        assert!((deviation(&row, 5.0) - (8f32 / 3.0).sqrt()).abs() < 1e-6);
        (row[0], row[1]) = (f32::MIN, f32::MAX);
        assert_eq!(deviation(&row, f32::MAX), f32::INFINITY);
        assert_eq!(deviation(&[2.5; 700], 2.5), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn log_probabilities_are_those_of_f64(
            row in prop::collection::vec(prop_oneof![-30f32..30.0, -1f32..1.0, Just(f32::NEG_INFINITY)], 1..1000),
            at in any::<prop::sample::Index>(),
        ) {
            prop_assume!(row.iter().any(|logit| logit.is_finite()));
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row.iter().map(|&logit| f64::from(logit - max).exp()).sum();
            let softmax = Softmax::of(&row).unwrap();
            prop_assert!((softmax.sum / sum - 1.0).abs() < 1e-6, "{} for {}", softmax.sum, sum);
            let logit = row[at.index(row.len())];
            let exact = f64::from(logit - max) - sum.ln();
            let ours = f64::from(softmax.logprob(logit));
            prop_assert!(ours == exact || (ours - exact).abs() <= 1e-6 * exact.abs().max(1.0), "{ours} for {exact}");
        }
    }
}
