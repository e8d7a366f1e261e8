//! Layers of networks.

use crate::{
    Array, Owned,
    operand::{Inner, Operand},
    raw::{self, Binary},
};

/// What attention leaves out.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Mask<'s> {
    /// Every query sees every key.
    None,
    /// Query i of L sees the keys up to S - L + i of S.
    Causal,
    /// Of booleans (true is seen), or added to the scores; broadcast to [batch, heads, L, S].
    Array(Array<'s>),
}

/// Which position the first row has.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum RopeOffset<'s> {
    /// This one, in the whole batch.
    At(i32),
    /// One of each of the batch.
    Each(Array<'s>),
}

impl<'s> Array<'s> {
    /// The product of matrices: of the last two dimensions, while those in front are broadcast.
    #[track_caller]
    #[must_use]
    pub fn matmul(self, rhs: impl Operand<'s>) -> Self {
        self.with("matmul", &rhs, |runtime, a, b| runtime.binary(Binary::MatMul, a, b))
    }

    /// `bias` plus the product with `weight`, in one.
    #[track_caller]
    #[must_use]
    pub fn addmm(self, bias: impl Operand<'s>, weight: impl Operand<'s>) -> Self {
        let home = super::deeper(super::deeper(self.scope, bias.home()), weight.home());
        let others = [bias.value(), weight.value()];
        self.combine("addmm", Some(home), others, |runtime, [a, bias, weight]| runtime.addmm(bias, a, weight))
    }

    /// The product with a quantised matrix: rows of packed words, of which `group_size` elements share a scale and a bias. With `transpose`
    /// with its transpose, as a linear layer has it.
    #[track_caller]
    #[must_use]
    pub fn quantized_matmul(
        self,
        weight: &Owned,
        scales: &Owned,
        biases: &Owned,
        transpose: bool,
        group_size: i32,
        bits: i32,
    ) -> Self {
        let others = [weight, scales, biases].map(|one| crate::operand::Value(one.inner()));
        self.combine("quantized_matmul", None, others, |runtime, [x, w, scales, biases]| {
            runtime.quantized_matmul(x, w, scales, biases, transpose, group_size, bits)
        })
    }

    /// The elements that these packed words stand for.
    #[track_caller]
    #[must_use]
    pub fn dequantize(self, scales: impl Operand<'s>, biases: impl Operand<'s>, group_size: i32, bits: i32) -> Self {
        let home = super::deeper(super::deeper(self.scope, scales.home()), biases.home());
        let others = [scales.value(), biases.value()];
        self.combine("dequantize", Some(home), others, |runtime, [w, scales, biases]| {
            runtime.dequantize(w, scales, biases, group_size, bits)
        })
    }

    /// Each row of the last axis over the root of the mean of its squares (plus `eps`), times the weight.
    #[track_caller]
    #[must_use]
    pub fn rms_norm<'w>(self, weight: impl Into<Option<&'w Owned>>, eps: f32) -> Self {
        match weight.into() {
            Some(weight) => self.with("rms_norm", &weight, |runtime, x, w| runtime.rms_norm(x, Some(w), eps)),
            None => self.apply("rms_norm", |runtime, x| runtime.rms_norm(x, None, eps)),
        }
    }

    /// Each row of the last axis less its mean, over the root of its variance (plus `eps`), times the weight, plus the bias.
    #[track_caller]
    #[must_use]
    pub fn layer_norm<'w>(
        self,
        weight: impl Into<Option<&'w Owned>>,
        bias: impl Into<Option<&'w Owned>>,
        eps: f32,
    ) -> Self {
        match (weight.into(), bias.into()) {
            (None, None) => self.apply("layer_norm", |runtime, x| runtime.layer_norm(x, None, None, eps)),
            (Some(w), None) => self.with("layer_norm", &w, |runtime, x, w| runtime.layer_norm(x, Some(w), None, eps)),
            (None, Some(b)) => self.with("layer_norm", &b, |runtime, x, b| runtime.layer_norm(x, None, Some(b), eps)),
            (Some(w), Some(b)) => {
                let others = [w, b].map(|one| crate::operand::Value(one.inner()));
                self.combine("layer_norm", None, others, |runtime, [x, w, b]| {
                    runtime.layer_norm(x, Some(w), Some(b), eps)
                })
            }
        }
    }

    /// Rotary positions: the first `dims` of the last axis are turned by their row's position, which counts from `offset` along the
    /// axis before it. `traditional`: neighbours are turned together, else the halves. Angles are by `base`, or by `freqs`, the wavelengths over 2π.
    #[track_caller]
    #[must_use]
    pub fn rope(
        self,
        dims: i32,
        traditional: bool,
        base: Option<f32>,
        scale: f32,
        offset: RopeOffset<'s>,
        freqs: Option<&Owned>,
    ) -> Self {
        if base.is_some() == freqs.is_some() {
            return self.refuse("rope", "angles are by a base, or by wavelengths: one of both");
        }
        let by = raw::Rope { dims, traditional, base: base.unwrap_or(0.0), scale };
        match (offset, freqs) {
            (RopeOffset::At(at), None) => self.apply("rope", |runtime, x| runtime.rope(x, by, None, at)),
            (RopeOffset::At(at), Some(freqs)) => {
                self.with("rope", &freqs, |runtime, x, freqs| runtime.rope(x, by, Some(freqs), at))
            }
            (RopeOffset::Each(at), None) => self.with("rope", &at, |runtime, x, at| runtime.rope_each(x, by, None, at)),
            (RopeOffset::Each(at), Some(freqs)) => {
                let others = [at.value(), freqs.value()];
                self.combine("rope", Some(at.scope), others, |runtime, [x, at, freqs]| {
                    runtime.rope_each(x, by, Some(freqs), at)
                })
            }
        }
    }

    /// Attention of these queries [batch, heads, L, dim] to keys and values [batch, heads of these, S, dim]: softmax(q·kᵀ·scale + mask)·v.
    #[track_caller]
    #[must_use]
    pub fn attention(self, k: impl Operand<'s>, v: impl Operand<'s>, scale: f32, mask: Mask<'s>) -> Self {
        let mut home = super::deeper(super::deeper(self.scope, k.home()), v.home());
        let Mask::Array(mask) = mask else {
            let mask = if let Mask::Causal = mask { raw::Attend::Causal } else { raw::Attend::Nothing };
            return self.combine("attention", Some(home), [k.value(), v.value()], |runtime, [q, k, v]| {
                runtime.attention(q, k, v, scale, mask)
            });
        };
        home = super::deeper(home, Some(mask.scope));
        self.combine("attention", Some(home), [k.value(), v.value(), mask.value()], |runtime, [q, k, v, mask]| {
            runtime.attention(q, k, v, scale, raw::Attend::Array(mask))
        })
    }

    /// The packed words, the scales and the biases of a matrix whose rows are quantised: [`quantized_matmul`](Self::quantized_matmul) takes
    /// them.
    #[track_caller]
    #[must_use]
    pub fn quantize(self, group_size: i32, bits: i32) -> [Self; 3] {
        let Inner::Live(node) = self.inner() else { return [self; 3] };
        let made = self.scope.runtime().quantize(node, group_size, bits);
        let refused = match made {
            Ok(parts) => match <[raw::Fresh; 3]>::try_from(parts) {
                Ok(parts) => {
                    let [words, scales, biases] = parts.map(|part| self.scope.put(part));
                    return [words, scales, biases];
                }
                Err(_) => return [self.refuse("quantize", "MLX gave another number of results"); 3],
            },
            Err(failure) => failure,
        };
        [self.scope.take_in("quantize", &[node], Err(refused)); 3]
    }
}
