//! `MaskedSoftmax`.

use super::{Arithmetic, Broadcast, LANES, Work, broadcast::Row, polynomial, reduce};
use std::{f32::consts::LOG2_E, hint::black_box};

/// The softmax of each row of `x + mask`.
pub(crate) struct MaskedSoftmax<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) mask: &'a [f32],
    /// Of `x` and `mask`.
    pub(crate) shapes: &'a Broadcast<2>,
    /// Which row of all `y` begins with.
    pub(crate) first: usize,
    pub(crate) y: &'a mut [f32],
}

/// Rows that are computed together: what takes long in one (what its lanes are together) is waited for by none of the others.
const GROUP: usize = 16;

impl Work for MaskedSoftmax<'_> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let width = self.shapes.width().max(1);
        let (mut x, mut mask) = (Row::new(self.x, self.shapes.of(0)), Row::new(self.mask, self.shapes.of(1)));
        let mut rows = self.shapes.rows(self.first);
        // Rows of whole chunks: the last is filled up with what counts as nothing.
        let chunks = width.div_ceil(LANES);
        let most = GROUP.min(self.y.len() / width);
        let mut numbers = vec![[f32::NEG_INFINITY; LANES]; most * chunks];
        for y in self.y.chunks_mut(GROUP * width) {
            let numbers = &mut numbers[..y.len() / width * chunks];
            for (sums, [at, other]) in numbers.chunks_exact_mut(chunks).zip(rows.by_ref()) {
                add(x.at(at), mask.at(other), sums.as_flattened_mut());
            }
            let inverse = exponentials::<A>(numbers, chunks);
            for ((y, exps), inverse) in y.chunks_exact_mut(width).zip(numbers.chunks_exact(chunks)).zip(inverse) {
                for (y, exp) in y.iter_mut().zip(exps.as_flattened()) {
                    *y = exp * inverse;
                }
            }
        }
    }
}

/// The sums of one row, and nothing beyond.
#[inline(always)]
fn add(x: &[f32], mask: &[f32], sums: &mut [f32]) {
    let (sums, beyond) = sums.split_at_mut(x.len());
    for ((sum, x), mask) in sums.iter_mut().zip(x).zip(mask) {
        *sum = x + mask;
    }
    beyond.fill(f32::NEG_INFINITY);
}

/// Of each row, of which there are no more than `GROUP`, the exponentials, the largest being 1; and what the sum of each is divided into.
#[inline(always)]
fn exponentials<A: Arithmetic>(numbers: &mut [[f32; LANES]], chunks: usize) -> [f32; GROUP] {
    let mut largest = [0.0; GROUP];
    for (largest, row) in largest.iter_mut().zip(numbers.chunks_exact(chunks)) {
        // As the runtime has it, none is less than this: a row of nothing but -inf has no NaN then.
        let mut most = [f32::MIN; LANES];
        for chunk in row {
            for lane in 0..LANES {
                most[lane] = larger(chunk[lane], most[lane]);
            }
        }
        // Hidden from the compiler what it is made of, or it mixes the two and has no whole registers in either: a fifth slower.
        *largest = reduce(black_box(most), larger);
    }
    let mut inverse = [0.0; GROUP];
    for ((inverse, largest), row) in inverse.iter_mut().zip(largest).zip(numbers.chunks_exact_mut(chunks)) {
        let mut sums = [0.0; LANES];
        for chunk in row {
            for lane in 0..LANES {
                chunk[lane] = exp::<A>(chunk[lane] - largest);
                sums[lane] += chunk[lane];
            }
        }
        *inverse = 1.0 / reduce(sums, |a, b| a + b);
    }
    inverse
}

/// The larger of two; the second, where the first is NaN.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// `e^x` of what is not positive, to a relative error of 1e-7; 0 where it would be less than the least normal number.
///
/// `2^k e^f` with `|f| <= ln 2 / 2`. The polynomial, whose first two coefficients are 1, was fitted for this: least squares of the relative error at
/// Chebyshev nodes, with weights raised where it is large until it is about the same everywhere: 3e-9.
#[inline(always)]
fn exp<A: Arithmetic>(x: f32) -> f32 {
    /// A number to which another is added to be rounded to a whole one: that is in its last bits then.
    const WHOLE: f32 = 12_582_912.0;
    /// The logarithm of 2 in two parts, of which few multiples of the first are rounded.
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    const LEAST: f32 = -87.3;
    const P: [f32; 7] = [1.0, 1.0, 0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_717_5, 0.001_381_459_6];
    let bounded = if x < LEAST { LEAST } else { x };
    let whole = A::mul_add(bounded, LOG2_E, WHOLE);
    let power = f32::from_bits((whole.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    let number = whole - WHOLE;
    let rest = A::mul_add(number, -LN_2[0], bounded);
    let rest = A::mul_add(number, -LN_2[1], rest);
    let exp = polynomial::<A, _>(rest, &P) * power;
    if x < LEAST { 0.0 } else { exp }
}
