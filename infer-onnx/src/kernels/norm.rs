//! `AddNormalization`.

use super::{Arithmetic, Broadcast, LANES, Work, broadcast::Row, reduce};

/// `u = (x + bias) + residual`, and of each row of it `y = (u - mean) / √(variance + epsilon) * scale + shift`.
pub(crate) struct AddNormalization<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) bias: &'a [f32],
    pub(crate) residual: &'a [f32],
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
    pub(crate) epsilon: f32,
    /// Of `x` and `residual`.
    pub(crate) shapes: &'a Broadcast<2>,
    /// Which row of all `y` begins with.
    pub(crate) first: usize,
    pub(crate) y: &'a mut [f32],
}

impl Work for AddNormalization<'_> {
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let width = self.shapes.width();
        let (mut x, mut residual) = (Row::new(self.x, self.shapes.of(0)), Row::new(self.residual, self.shapes.of(1)));
        for (y, [at, other]) in self.y.chunks_exact_mut(width.max(1)).zip(self.shapes.rows(self.first)) {
            let added = x.at(at).iter().zip(self.bias).zip(residual.at(other));
            for (y, ((x, bias), residual)) in y.iter_mut().zip(added) {
                *y = (x + bias) + residual;
            }
            let mean = sum(y, |u| u) / width as f32;
            let variance = sum(y, |u| (u - mean) * (u - mean)) / width as f32;
            let inverse = 1.0 / (variance + self.epsilon).sqrt();
            for ((y, &scale), &shift) in y.iter_mut().zip(self.scale).zip(self.shift) {
                *y = A::mul_add((*y - mean) * inverse, scale, shift);
            }
        }
    }
}

/// The sum of `of(u)`, in several parts, that additions need not wait for each other.
#[inline(always)]
fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [[0.0_f32; LANES]; 4];
    let (chunks, rest) = numbers.as_chunks::<{ 4 * LANES }>();
    for chunk in chunks {
        for (sums, numbers) in sums.iter_mut().zip(chunk.as_chunks::<LANES>().0) {
            for (sum, &number) in sums.iter_mut().zip(numbers) {
                *sum += of(number);
            }
        }
    }
    let mut all = [0.0; LANES];
    for lane in 0..LANES {
        all[lane] = (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
    }
    reduce(all, |a, b| a + b) + rest.iter().map(|&number| of(number)).sum::<f32>()
}
