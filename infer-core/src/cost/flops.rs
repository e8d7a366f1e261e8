//! How much work a token is.

use super::{Dims, product, sum};

impl Dims {
    /// Floating-point operations for one token by the simple formula: 2 × the parameters it meets.
    ///
    /// It is meant for large models at short contexts, and is off in these ways: it leaves out attention over the
    /// context, which grows with each token; it counts an embedding of its own as if it were multiplied, although a row
    /// is only looked up; it counts norms and biases.
    #[must_use]
    pub fn simple_flops(&self) -> u64 {
        self.active_parameters().total().saturating_mul(2)
    }

    /// Floating-point operations to compute one token that attends to `context` positions, itself included: every
    /// matrix product, a multiplication and an addition counted as two.
    ///
    /// Left out, as they are linear in the width and less than a percent: norms, rotary positions, softmax, activations,
    /// biases, residuals, and dequantisation.
    #[must_use]
    pub fn flops(&self, context: usize) -> Flops {
        self.count_flops(1, context as u64)
    }

    /// Floating-point operations to compute a prompt of `tokens`, one after the other or at once, with logits after the
    /// last of them only.
    ///
    /// A token attends to those before it and itself, so over a prompt that is `tokens × (tokens + 1) / 2` positions; a
    /// runtime that computes whole squares and masks them does up to twice the attention.
    #[must_use]
    pub fn prompt_flops(&self, tokens: usize) -> Flops {
        let n = tokens as u64;
        // One of two neighbours is even, so the halving is exact.
        let (even, odd) = if n.is_multiple_of(2) { (n / 2, n.saturating_add(1)) } else { (n.div_ceil(2), n) };
        self.count_flops(n, even.saturating_mul(odd))
    }

    fn count_flops(&self, tokens: u64, attended: u64) -> Flops {
        Flops {
            projections: self.attention_matrices().saturating_mul(2).saturating_mul(tokens),
            feed_forward: self.feed_forward_matrices(self.experts_used).saturating_mul(2).saturating_mul(tokens),
            // Queries with keys, then weights with values.
            attention: product(&[4, self.layers, self.heads, self.head_dim]).saturating_mul(attended),
            head: if tokens == 0 || !self.has_output() { 0 } else { product(&[2, self.vocab, self.width]) },
        }
    }
}

/// Floating-point operations by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flops {
    /// Making queries, keys, values, and the projection after attention.
    pub projections: u64,
    /// The feed-forward layers.
    pub feed_forward: u64,
    /// Attention itself: the only part that grows with the context.
    pub attention: u64,
    /// The output layer.
    pub head: u64,
}

impl Flops {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        sum(&[self.projections, self.feed_forward, self.attention, self.head])
    }
}
