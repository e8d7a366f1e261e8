use super::{Dims, KvType, product, sum};

/// The weights of one number format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DtypeWeights {
    /// The format's name, as the file's format has it (`q4_1`, `f32`).
    pub dtype: String,
    /// Tensors.
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
        let at = self.by_dtype.iter().position(|row| row.dtype == dtype).unwrap_or_else(|| {
            self.by_dtype.push(DtypeWeights { dtype: dtype.into(), tensors: 0, elements: 0, bytes: 0 });
            self.by_dtype.len() - 1
        });
        let row = &mut self.by_dtype[at];
        row.tensors += 1;
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
    /// Format of the keys.
    pub keys: KvType,
    /// Format of the values.
    pub values: KvType,
    /// Attention is computed in tiles, so that no table of heads × batch × positions is kept.
    pub flash_attention: bool,
}

impl Setup {
    /// A session that holds this many positions, with 512 tokens a batch, an f16 cache and flash attention.
    #[must_use]
    pub const fn new(positions: usize) -> Self {
        Self { positions, batch: 512, keys: KvType::F16, values: KvType::F16, flash_attention: true }
    }

    /// Sets [`batch`](Self::batch).
    #[must_use]
    pub const fn with_batch(mut self, batch: usize) -> Self {
        self.batch = batch;
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
    /// The weights.
    pub weights: u64,
    /// The KV cache. Exact.
    pub kv: u64,
    /// Intermediate results of a pass. Rough.
    pub compute: u64,
}

impl Estimate {
    /// The memory for a model of these dimensions, whose weights take `weights` bytes.
    ///
    /// [`compute`](Self::compute) is 4 × batch × (the widest row + 4 × width), the widest row being the logits, or without
    /// flash attention the scores and the mask: (heads + 1) × positions. llama.cpp's own buffers for SmolLM2-135M were
    /// within 3 % of it at batches of 128 and 512 and contexts of 512 to 8,192.
    #[must_use]
    pub fn new(dims: &Dims, weights: u64, setup: &Setup) -> Self {
        let scores = if setup.flash_attention { 0 } else { product(&[dims.heads.saturating_add(1), setup.positions]) };
        let row = sum(&[scores.max(dims.vocab as u64), product(&[4, dims.width])]);
        Self {
            weights,
            kv: dims.kv_bytes_per_position(setup.keys, setup.values).saturating_mul(setup.positions as u64),
            compute: product(&[4, setup.batch]).saturating_mul(row),
        }
    }

    /// All of it.
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

    /// The buffers that llama.cpp reported for this model.
    #[test]
    fn compute_is_near_what_was_measured() {
        for (positions, batch, flash_attention, measured_mib) in [
            (512, 128, true, 24.56),
            (512, 512, true, 98.25),
            (8192, 512, true, 98.25),
            (2048, 512, false, 99.38),
            (8192, 128, false, 41.60),
            (8192, 512, false, 166.38),
        ] {
            let setup = Setup::new(positions).with_batch(batch).with_flash_attention(flash_attention);
            let mib = Estimate::new(&SMOLLM2, 0, &setup).compute as f64 / f64::from(1 << 20);
            assert!((mib / measured_mib - 1.0).abs() < 0.03, "{positions} {batch} {flash_attention}: {mib:.2} MiB");
        }
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
