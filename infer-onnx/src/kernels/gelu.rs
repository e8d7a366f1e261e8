//! `BiasGelu`.

use super::{Arithmetic, Work, polynomial};
use std::f32::consts::FRAC_1_SQRT_2;

/// `y = g(x + bias)` with `g(u) = u/2 (1 + erf(u / √2))`, for rows as wide as the bias.
pub(crate) struct BiasGelu<'a> {
    /// As many as `y` has.
    pub(crate) x: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) y: &'a mut [f32],
}

impl Work for BiasGelu<'_> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let width = self.bias.len().max(1);
        for (y, x) in self.y.chunks_exact_mut(width).zip(self.x.chunks_exact(width)) {
            for ((y, x), bias) in y.iter_mut().zip(x).zip(self.bias) {
                *y = gelu::<A>(x + bias);
            }
        }
    }
}

#[inline(always)]
fn gelu<A: Arithmetic>(u: f32) -> f32 {
    0.5 * u * (1.0 + erf::<A>(u * FRAC_1_SQRT_2))
}

/// Beyond it the function is 1 but for less than a rounding, and the quotient is more than 1, however its parts are rounded: limited, it is 1 to the
/// bit, and a large number times what is missing is nothing.
const END: f32 = 4.0;

/// `erf(t) = t P(t²) / Q(t²)`.
///
/// Fitted for this: weighted least squares of `t P - Q erf` at Chebyshev nodes of `t²`, up to `t = 3.92`; weights divided by the `Q` of the round
/// before, so that the error is that of the quotient, and raised where it is large, until it is about the same everywhere: 1.6e-8.
#[inline(always)]
fn erf<A: Arithmetic>(t: f32) -> f32 {
    #[expect(clippy::approx_constant, reason = "the first is near 2/√π, and not it: it was fitted with the others")]
    const P: [f32; 6] = [1.128_379, 0.192_762_8, 0.053_060_33, 0.003_868_278_3, 0.000_287_479_05, 2.034_754e-6];
    const Q: [f32; 6] = [1.0, 0.504_163_27, 0.115_084_11, 0.015_172_197, 0.001_188_104_7, 3.807_082e-5];
    let t = t.clamp(-END, END);
    let square = t * t;
    let quotient = t * polynomial::<A, _>(square, &P) / polynomial::<A, _>(square, &Q);
    quotient.clamp(-1.0, 1.0)
}
