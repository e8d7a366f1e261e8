//! What memory a model takes, and whether it fits.

use super::{Dims, KvType, product, sum};

/// The weights of one number format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DtypeWeights {
    /// The format's name, as the file's format has it (`q4_1`, `f32`).
    pub dtype: String,
    /// How many tensors are of it.
    pub tensors: u64,
    /// Elements, over all of them.
    pub elements: u64,
    /// Bytes, over all of them.
    pub bytes: u64,
}

/// The weights of a model file by number format, the format with the most bytes first.
///
/// ```
/// use infer_core::cost::Weights;
///
/// let mut weights = Weights::default();
/// weights.add("f32", 576, 2304);
/// weights.add("q4_0", 32 * 100, 18 * 100);
/// weights.add("q4_0", 32 * 100, 18 * 100);
/// assert_eq!(weights.by_dtype()[0].dtype, "q4_0");
/// assert_eq!((weights.by_dtype()[0].tensors, weights.bytes()), (2, 2304 + 3600));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Weights {
    by_dtype: Vec<DtypeWeights>,
}

impl Weights {
    /// Adds one tensor.
    pub fn add(&mut self, dtype: &str, elements: u64, bytes: u64) {
        self.add_all(dtype, 1, elements, bytes);
    }

    /// Adds so many tensors of one format, by what they have together.
    pub fn add_all(&mut self, dtype: &str, tensors: u64, elements: u64, bytes: u64) {
        let at = self.by_dtype.iter().position(|row| row.dtype == dtype).unwrap_or_else(|| {
            self.by_dtype.push(DtypeWeights { dtype: dtype.into(), tensors: 0, elements: 0, bytes: 0 });
            self.by_dtype.len() - 1
        });
        let row = &mut self.by_dtype[at];
        row.tensors = row.tensors.saturating_add(tensors);
        row.elements = row.elements.saturating_add(elements);
        row.bytes = row.bytes.saturating_add(bytes);
        self.by_dtype.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    }

    /// The formats, the one with the most bytes first.
    #[must_use]
    pub fn by_dtype(&self) -> &[DtypeWeights] {
        &self.by_dtype
    }

    /// Elements of all weights.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.by_dtype.iter().fold(0, |sum, row| sum.saturating_add(row.elements))
    }

    /// Bytes of all weights.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.by_dtype.iter().fold(0, |sum, row| sum.saturating_add(row.bytes))
    }

    /// Bits an element, on average; 0 where there are no weights.
    #[must_use]
    pub fn bits_per_weight(&self) -> f64 {
        let elements = self.elements();
        if elements == 0 { 0.0 } else { self.bytes() as f64 * 8.0 / elements as f64 }
    }
}

/// How a session is set up, as far as memory is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setup {
    /// Positions held, over all sequences.
    pub positions: usize,
    /// Tokens computed at once.
    pub batch: usize,
    /// Rows of logits computed at once; at most [`batch`](Self::batch).
    pub outputs: usize,
    /// Format of the keys.
    pub keys: KvType,
    /// Format of the values.
    pub values: KvType,
    /// Attention is computed in tiles, so that no table of heads × batch × positions is kept.
    pub flash_attention: bool,
}

impl Setup {
    /// A session that holds this many positions, with 512 tokens a batch and 32 rows of logits at once, which is what sessions have where nothing
    /// else is asked for, an f16 cache and flash attention.
    #[must_use]
    pub const fn new(positions: usize) -> Self {
        Self { positions, batch: 512, outputs: 32, keys: KvType::F16, values: KvType::F16, flash_attention: true }
    }

    /// Sets [`batch`](Self::batch).
    #[must_use]
    pub const fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch;
        self
    }

    /// Sets [`outputs`](Self::outputs).
    #[must_use]
    pub const fn with_outputs(mut self, outputs: usize) -> Self {
        self.outputs = outputs;
        self
    }

    /// Sets the format of [`keys`](Self::keys) and [`values`](Self::values).
    #[must_use]
    pub const fn with_kv(mut self, keys: KvType, values: KvType) -> Self {
        self.keys = keys;
        self.values = values;
        self
    }

    /// Sets [`flash_attention`](Self::flash_attention).
    #[must_use]
    pub const fn with_flash_attention(mut self, flash_attention: bool) -> Self {
        self.flash_attention = flash_attention;
        self
    }
}

/// What running a model takes of memory, in bytes.
///
/// ```
/// use infer_core::cost::{Dims, Estimate, Fit, Setup};
///
/// let dims = Dims::new(32, 4096, 32, 8, 128, 128_256).with_feed_forward(14_336);
/// let estimate = Estimate::new(&dims, 2 * dims.parameters().total(), &Setup::new(8192));
/// assert_eq!(estimate.kv, 1 << 30);
/// assert!(matches!(estimate.fit(16 << 30), Fit::Exceeds { .. }));
/// assert!(matches!(estimate.fit(24 << 30), Fit::Fits { .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimate {
    /// Bytes of the weights.
    pub weights: u64,
    /// Bytes of the KV cache. Exact.
    pub kv: u64,
    /// Bytes of the intermediate results of a pass. Rough.
    pub compute: u64,
}

impl Estimate {
    /// The memory for a model of these dimensions, whose weights take `weights` bytes.
    ///
    /// [`compute`](Self::compute) is the most of three moments, in numbers of 4 bytes: the logits, outputs × vocabulary + batch × width;
    /// the feed-forward layer, batch × (4 × width + its matrices' results); attention, batch × (5 × width + keys and values), and without
    /// flash attention the scores, batch × heads × positions. To the latter two comes the mask, batch × positions of 2 bytes, or of 4
    /// without flash attention. llama.cpp's own buffers for SmolLM2-135M were within 7 % of it at batches of 64 to 512 and contexts of
    /// 512 to 8,192, those for a tiny model within 13 %.
    #[must_use]
    pub fn new(dims: &Dims, weights: u64, setup: &Setup) -> Self {
        Self {
            weights,
            kv: dims.kv_bytes_per_position(setup.keys, setup.values).saturating_mul(setup.positions as u64),
            compute: compute(dims, setup),
        }
    }

    /// Bytes in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        sum(&[self.weights, self.kv, self.compute])
    }

    /// Whether it fits in `memory` bytes, and by how much.
    #[must_use]
    pub fn fit(&self, memory: u64) -> Fit {
        let total = self.total();
        match memory.checked_sub(total) {
            Some(left) => Fit::Fits { left },
            None => Fit::Exceeds { by: total - memory },
        }
    }
}

fn compute(dims: &Dims, setup: &Setup) -> u64 {
    let Setup { positions, batch, .. } = *setup;
    let (scores, of_mask) = if setup.flash_attention { (0, 2) } else { (product(&[dims.heads, positions]), 4) };
    let attention = sum(&[product(&[5, dims.width]), product(&[2, dims.kv_heads, dims.head_dim]), scores]);
    let feed_forward = sum(&[product(&[4, dims.width]), dims.inner_results()]);
    let of_layer = product(&[4, batch])
        .saturating_mul(attention.max(feed_forward))
        .saturating_add(product(&[of_mask, batch, positions]));
    let logits = sum(&[product(&[4, setup.outputs.min(batch), dims.vocab]), product(&[4, batch, dims.width])]);
    of_layer.max(logits)
}

/// Whether something fits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It fits.
    Fits {
        /// Bytes that remain.
        left: u64,
    },
    /// It does not fit.
    Exceeds {
        /// Bytes that are missing.
        by: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMOLLM2: Dims = Dims::new(30, 576, 9, 3, 64, 49_152).with_feed_forward(1536).with_tied(true);

    const TINY: Dims = Dims::new(2, 64, 4, 2, 16, 259).with_feed_forward(96);

    /// The buffers that llama.cpp reported for these models.
    #[test]
    fn compute_is_near_what_was_measured() {
        for (dims, positions, batch, outputs, flash_attention, measured_mib, off) in [
            (SMOLLM2, 512, 128, 128, true, 24.56, 0.03),
            (SMOLLM2, 512, 512, 512, true, 98.25, 0.03),
            (SMOLLM2, 8192, 512, 512, true, 98.25, 0.03),
            (SMOLLM2, 2048, 512, 512, false, 99.38, 0.03),
            (SMOLLM2, 512, 512, 32, true, 14.01, 0.03),
            (SMOLLM2, 2048, 512, 32, true, 15.51, 0.03),
            (SMOLLM2, 8192, 512, 32, true, 21.51, 0.03),
            (SMOLLM2, 512, 128, 32, true, 6.42, 0.07),
            (SMOLLM2, 8192, 128, 32, true, 6.70, 0.07),
            (SMOLLM2, 8192, 64, 32, true, 6.21, 0.03),
            (SMOLLM2, 2048, 512, 32, false, 46.38, 0.03),
            (SMOLLM2, 8192, 128, 32, false, 41.60, 0.03),
            (SMOLLM2, 8192, 512, 32, false, 166.38, 0.03),
            (TINY, 512, 512, 32, true, 1.387, 0.13),
            (TINY, 8192, 512, 32, true, 8.887, 0.03),
            (TINY, 8192, 128, 32, false, 20.19, 0.03),
        ] {
            let setup = Setup::new(positions).with_batch(batch).with_outputs(outputs);
            let setup = setup.with_flash_attention(flash_attention);
            let mib = Estimate::new(&dims, 0, &setup).compute as f64 / f64::from(1 << 20);
            assert!((mib / measured_mib - 1.0).abs() < off, "{setup:?}: {mib:.2} MiB, not {measured_mib}");
        }
    }

    #[test]
    fn an_encoder_has_no_cache_and_no_output_layer_unless_of_its_own() {
        let setup = Setup::new(512);
        let minilm = Dims::new(6, 384, 12, 12, 32, 30_522).with_feed_forward(1536).with_gated(false).with_tied(true);
        let encoder = minilm.with_encoder(true);
        assert_ne!((Estimate::new(&minilm, 0, &setup).kv, minilm.flops(512).head), (0, 0));
        assert_eq!((Estimate::new(&encoder, 0, &setup).kv, encoder.flops(512).head), (0, 0));
        assert_eq!(encoder.with_tied(false).flops(512).head, 2 * 384 * 30_522);
        assert_eq!(encoder.flops(512).attention, minilm.flops(512).attention);
    }

    #[test]
    fn adds_up_and_says_by_how_much() {
        let setup = Setup::new(2048).with_kv(KvType::F16, KvType::F16);
        let estimate = Estimate::new(&SMOLLM2, 1000, &setup);
        assert_eq!(estimate.kv, 45 << 20);
        let total = estimate.total();
        assert_eq!(total, 1000 + (45 << 20) + estimate.compute);
        assert_eq!(estimate.fit(total), Fit::Fits { left: 0 });
        assert_eq!(estimate.fit(total - 1), Fit::Exceeds { by: 1 });
    }

    #[test]
    fn weights_are_sorted_and_averaged() {
        let mut weights = Weights::default();
        assert_eq!(weights.bits_per_weight(), 0.0);
        weights.add("f32", 8, 32);
        weights.add("q8_0", 32, 34);
        weights.add("f16", 8, 16);
        let names: Vec<_> = weights.by_dtype().iter().map(|row| row.dtype.as_str()).collect();
        assert_eq!(names, ["q8_0", "f32", "f16"]);
        assert_eq!((weights.elements(), weights.bytes()), (48, 82));
        assert!((weights.bits_per_weight() - 82.0 * 8.0 / 48.0).abs() < 1e-12);
    }
}
