//! How many numbers a model has.

use super::{Biases, Dims, product, sum};

impl Dims {
    /// Parameters, exactly, given the whole description.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        self.count(self.experts)
    }

    /// Parameters that one token meets: of the experts, those it goes through.
    #[must_use]
    pub fn active_parameters(&self) -> Parameters {
        self.count(self.experts_used)
    }

    fn count(&self, experts: usize) -> Parameters {
        let Self { layers, width, head_dim, vocab, .. } = *self;
        let (all, some) = (self.biases == Biases::All, self.biases != Biases::None);
        let bias = |present: bool, elements: &[usize]| if present { product(elements) } else { 0 };
        let queries_keys_values = sum(&[product(&[self.heads, head_dim]), product(&[2, self.kv_heads, head_dim])]);
        // Two norms a layer and one at the end; each has a bias where everything has.
        let norm = product(&[width, 1 + usize::from(all)]);
        let norms = norm.saturating_mul(sum(&[product(&[2, layers]), 1]));
        let qk_norms = bias(self.qk_norm, &[2, head_dim, layers]);
        let experts_met = if self.experts == 0 { 1 } else { experts.saturating_add(self.experts_shared) };
        let inner = self.feed_forward.unwrap_or_else(|| width.saturating_mul(4));
        let feed_forward_biases = bias(all, &[layers, experts_met, self.ups(), inner])
            .saturating_add(bias(all, &[layers, experts_met, width]));
        let qkv_biases = if some { queries_keys_values.saturating_mul(layers as u64) } else { 0 };
        Parameters {
            embedding: product(&[vocab.saturating_add(self.positions), width]),
            attention: self.attention_matrices(),
            feed_forward: self.feed_forward_matrices(experts),
            norms_and_biases: sum(&[norms, qk_norms, qkv_biases, bias(all, &[layers, width]), feed_forward_biases]),
            head: if self.tied { 0 } else { product(&[vocab, width]) },
        }
    }

    /// Numbers of one token in a feed-forward layer at once: what each of its matrices takes in or gives, of all experts it meets.
    pub(super) fn inner_results(&self) -> u64 {
        let inner = self.feed_forward.unwrap_or_else(|| self.width.saturating_mul(4));
        let met = if self.experts == 0 { 1 } else { self.experts_used.saturating_add(self.experts_shared) };
        product(&[inner, met, 1 + self.ups()])
    }

    /// The matrices that lead into the inner width: two with a gate.
    fn ups(&self) -> usize {
        1 + usize::from(self.gated && self.feed_forward.is_some())
    }

    /// Elements of the four matrices of attention, over all layers.
    pub(super) fn attention_matrices(&self) -> u64 {
        let queries = product(&[2, self.layers, self.width, self.heads, self.head_dim]);
        let keys = product(&[2, self.layers, self.width, self.kv_heads, self.head_dim]);
        queries.saturating_add(keys)
    }

    /// Elements of the feed-forward matrices that are met with this many experts, and of the router, over all layers.
    pub(super) fn feed_forward_matrices(&self, experts: usize) -> u64 {
        let one = match self.feed_forward {
            Some(inner) => product(&[self.layers, self.width, inner, 1 + self.ups()]),
            None => product(&[self.layers, 8, self.width, self.width]),
        };
        if self.experts == 0 {
            return one;
        }
        let met = experts.saturating_add(self.experts_shared) as u64;
        one.saturating_mul(met).saturating_add(product(&[self.layers, self.width, self.experts]))
    }
}

/// Parameters by what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameters {
    /// The token embedding, and learned positions.
    pub embedding: u64,
    /// Matrices of attention.
    pub attention: u64,
    /// Matrices of the feed-forward layers, and the routers of experts.
    pub feed_forward: u64,
    /// Norms and biases.
    pub norms_and_biases: u64,
    /// The output layer; 0 where it is the embedding's matrix.
    pub head: u64,
}

impl Parameters {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        sum(&[self.embedding, self.attention, self.feed_forward, self.norms_and_biases, self.head])
    }
}
