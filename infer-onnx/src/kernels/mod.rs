//! The arithmetic of the operators that are ours: safe functions over slices, written so that the compiler vectorises them.
//!
//! Each operator is a [`Work`], whose body is compiled once for every set of instructions that is of use; `raw` runs the one that the processor has
//! (`Cpu`). What is given is of the lengths that each says: a body that is given other ones panics or leaves something out, and
//! touches nothing else.

mod broadcast;
mod gelu;
mod heads;
mod norm;
mod softmax;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use broadcast::Broadcast;
pub(crate) use gelu::BiasGelu;
pub(crate) use heads::BiasHeads;
pub(crate) use norm::AddNormalization;
pub(crate) use softmax::MaskedSoftmax;

/// Something to compute, on whatever instructions there are.
///
/// `run` and all that it calls is `#[inline(always)]`: a function that is not part of its caller is compiled without its caller's instructions.
pub(crate) trait Work {
    fn run<A: Arithmetic>(self);
}

/// What is computed in one way with some instructions and in another without.
pub(crate) trait Arithmetic {
    /// `a * b + c`.
    fn mul_add(a: f32, b: f32, c: f32) -> f32;
}

/// With an instruction that rounds once.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Fused;

/// Without, where a product that is not rounded is a call into a library.
pub(crate) struct Plain;

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Fused {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

impl Arithmetic for Plain {
    #[inline(always)]
    fn mul_add(a: f32, b: f32, c: f32) -> f32 {
        a * b + c
    }
}

/// How many numbers are computed side by side: those of the widest registers.
const LANES: usize = 16;

/// `c[0] + c[1] x + c[2] x² + …`.
#[inline(always)]
fn polynomial<A: Arithmetic, const N: usize>(x: f32, coefficients: &[f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for coefficient in coefficients[..N - 1].iter().rev() {
        sum = A::mul_add(sum, x, *coefficient);
    }
    sum
}

/// What the lanes are together: halves with halves, which is an order that the compiler can keep and vectorise.
#[inline(always)]
fn reduce(mut lanes: [f32; LANES], of: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = of(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}
