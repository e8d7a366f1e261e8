use super::{KvType, product, sum};
use crate::{Error, Result};

/// Which linear layers add a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Biases {
    /// None (Llama, Mistral, Qwen3).
    #[default]
    None,
    /// Those that make queries, keys and values (Qwen2).
    Qkv,
    /// All, the norms included (GPT-2).
    All,
}

/// The dimensions of a transformer: a decoder, or an encoder.
///
/// All layers are taken to be alike. Not described: layers of different kinds (a few dense ones before the experts),
/// compressed keys and values (MLA), convolutions and recurrent state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Dims {
    /// Blocks.
    pub layers: usize,
    /// Width of the hidden state (`d_model`).
    pub width: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads: as many as [`heads`](Self::heads), or fewer in grouped-query attention.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Entries of the vocabulary.
    pub vocab: usize,
    /// Width of the feed-forward layer, of one expert where there are several. `None` where it is not known: its
    /// matrices are then taken to have 8 × [`width`](Self::width)² elements, which is both 4 × width without a gate and
    /// 8/3 × width with one.
    pub feed_forward: Option<usize>,
    /// The feed-forward layer has a gate: three matrices and not two.
    pub gated: bool,
    /// The output layer uses the matrix of the embedding.
    pub tied: bool,
    /// A text is computed at once and every token sees all others (BERT): no KV cache, and no output layer where it has none of its
    /// own.
    pub encoder: bool,
    /// Learned positions; 0 where positions are computed (rotary).
    pub positions: usize,
    /// Which layers add a bias.
    pub biases: Biases,
    /// Queries and keys are normed head by head (Qwen3).
    pub qk_norm: bool,
    /// Experts; 0 for a dense model.
    pub experts: usize,
    /// Experts that a token goes through, beside the shared ones.
    pub experts_used: usize,
    /// Experts that every token goes through.
    pub experts_shared: usize,
}

impl Dims {
    /// A dense model of these dimensions with a gated feed-forward layer of unknown width, an output layer of its own, no
    /// biases and rotary positions: the Llama family.
    #[must_use]
    pub const fn new(
        layers: usize,
        width: usize,
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        vocab: usize,
    ) -> Self {
        Self {
            layers,
            width,
            heads,
            kv_heads,
            head_dim,
            vocab,
            feed_forward: None,
            gated: true,
            tied: false,
            encoder: false,
            positions: 0,
            biases: Biases::None,
            qk_norm: false,
            experts: 0,
            experts_used: 0,
            experts_shared: 0,
        }
    }

    /// Sets [`feed_forward`](Self::feed_forward).
    #[must_use]
    pub const fn with_feed_forward(mut self, width: usize) -> Self {
        self.feed_forward = Some(width);
        self
    }

    /// Sets [`gated`](Self::gated).
    #[must_use]
    pub const fn with_gated(mut self, gated: bool) -> Self {
        self.gated = gated;
        self
    }

    /// Sets [`tied`](Self::tied).
    #[must_use]
    pub const fn with_tied(mut self, tied: bool) -> Self {
        self.tied = tied;
        self
    }

    /// Sets [`encoder`](Self::encoder).
    #[must_use]
    pub const fn with_encoder(mut self, encoder: bool) -> Self {
        self.encoder = encoder;
        self
    }

    /// Sets [`positions`](Self::positions).
    #[must_use]
    pub const fn with_positions(mut self, positions: usize) -> Self {
        self.positions = positions;
        self
    }

    /// Sets [`biases`](Self::biases).
    #[must_use]
    pub const fn with_biases(mut self, biases: Biases) -> Self {
        self.biases = biases;
        self
    }

    /// Sets [`qk_norm`](Self::qk_norm).
    #[must_use]
    pub const fn with_qk_norm(mut self, qk_norm: bool) -> Self {
        self.qk_norm = qk_norm;
        self
    }

    /// Sets [`experts`](Self::experts), [`experts_used`](Self::experts_used) and [`experts_shared`](Self::experts_shared).
    #[must_use]
    pub const fn with_experts(mut self, experts: usize, used: usize, shared: usize) -> Self {
        self.experts = experts;
        self.experts_used = used;
        self.experts_shared = shared;
        self
    }

    /// Checks that a model can have these dimensions.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), naming the dimension: one that is 0, heads that do not divide
    /// among key/value heads, more experts used than there are.
    pub fn validate(&self) -> Result<()> {
        let required = [
            ("layers", self.layers),
            ("width", self.width),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("head_dim", self.head_dim),
            ("vocab", self.vocab),
            ("feed_forward", self.feed_forward.unwrap_or(1)),
        ];
        if let Some((name, _)) = required.into_iter().find(|&(_, size)| size == 0) {
            return Err(Error::invalid_input(format!("{name} is 0, it must be at least 1")));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let Self { heads, kv_heads, .. } = self;
            return Err(Error::invalid_input(format!("{heads} heads do not divide among {kv_heads} kv_heads")));
        }
        if self.experts_used > self.experts {
            let Self { experts, experts_used, .. } = self;
            return Err(Error::invalid_input(format!("experts_used is {experts_used}, there are {experts} experts")));
        }
        Ok(())
    }

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

    /// Whether logits are computed.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        !self.encoder || !self.tied
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
    fn attention_matrices(&self) -> u64 {
        let queries = product(&[2, self.layers, self.width, self.heads, self.head_dim]);
        let keys = product(&[2, self.layers, self.width, self.kv_heads, self.head_dim]);
        queries.saturating_add(keys)
    }

    /// Elements of the feed-forward matrices that are met with this many experts, and of the router, over all layers.
    fn feed_forward_matrices(&self, experts: usize) -> u64 {
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

    /// Bytes of KV cache that one position of one sequence takes: layers × KV heads × head width × bytes an element, for
    /// keys and for values. None for an [`encoder`](Self::encoder).
    ///
    /// In quantised formats the keys of one layer are a row of whole blocks of 32.
    #[must_use]
    pub fn kv_bytes_per_position(&self, keys: KvType, values: KvType) -> u64 {
        if self.encoder {
            return 0;
        }
        let row = product(&[self.kv_heads, self.head_dim]);
        sum(&[keys.bytes(row), values.bytes(row)]).saturating_mul(self.layers as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    const GPT2: Dims = Dims::new(12, 768, 12, 12, 64, 50_257)
        .with_feed_forward(3072)
        .with_gated(false)
        .with_tied(true)
        .with_positions(1024)
        .with_biases(Biases::All);
    const LLAMA3_8B: Dims = Dims::new(32, 4096, 32, 8, 128, 128_256).with_feed_forward(14_336);
    const LLAMA3_70B: Dims = Dims::new(80, 8192, 64, 8, 128, 128_256).with_feed_forward(28_672);
    const QWEN2_0_5B: Dims =
        Dims::new(24, 896, 14, 2, 64, 151_936).with_feed_forward(4864).with_tied(true).with_biases(Biases::Qkv);
    const QWEN3_4B: Dims =
        Dims::new(36, 2560, 32, 8, 128, 151_936).with_feed_forward(9728).with_tied(true).with_qk_norm(true);
    const MIXTRAL_8X7B: Dims = Dims::new(32, 4096, 32, 8, 128, 32_000).with_feed_forward(14_336).with_experts(8, 2, 0);
    const SMOLLM2_135M: Dims = Dims::new(30, 576, 9, 3, 64, 49_152).with_feed_forward(1536).with_tied(true);

    /// The counts are those of the published checkpoints.
    #[test]
    fn parameters_are_those_of_the_published_models() {
        for (dims, parameters) in [
            (GPT2, 124_439_808),
            (LLAMA3_8B, 8_030_261_248),
            (LLAMA3_70B, 70_553_706_496),
            (QWEN2_0_5B, 494_032_768),
            (QWEN3_4B, 4_022_468_096),
            (MIXTRAL_8X7B, 46_702_792_704),
            (SMOLLM2_135M, 134_515_008),
        ] {
            dims.validate().unwrap();
            assert_eq!(dims.parameters().total(), parameters, "{dims:?}");
        }
        assert_eq!(MIXTRAL_8X7B.active_parameters().total(), 12_879_925_248);
    }

    #[test]
    fn kv_cache_of_qwen3_4b() {
        let position = QWEN3_4B.kv_bytes_per_position(KvType::F16, KvType::F16);
        assert_eq!(position, 144 << 10);
        assert_eq!(position * 4096, 576 << 20);
        assert_eq!(QWEN3_4B.kv_bytes_per_position(KvType::Q8_0, KvType::Q8_0), (144 << 10) * 34 / 64);
        assert_eq!(QWEN3_4B.kv_bytes_per_position(KvType::F32, KvType::F16), 216 << 10);
    }

    #[test]
    fn kv_cache_of_the_other_rows() {
        for (dims, bytes) in
            [(GPT2, 36 << 10), (LLAMA3_8B, 128 << 10), (LLAMA3_70B, 320 << 10), (SMOLLM2_135M, 22_528 + 512)]
        {
            assert_eq!(dims.kv_bytes_per_position(KvType::F16, KvType::F16), bytes, "{dims:?}");
        }
    }

    /// Llama-3-8B, product by product: 2 × rows × columns for each matrix, 4 × heads × head width a position attended to.
    #[test]
    fn flops_are_every_matrix_product() {
        let flops = LLAMA3_8B.flops(1000);
        assert_eq!(flops.projections, 32 * 2 * (2 * 4096 * 4096 + 2 * 4096 * 1024));
        assert_eq!(flops.feed_forward, 32 * 2 * 3 * 4096 * 14_336);
        assert_eq!(flops.attention, 32 * 4 * 4096 * 1000);
        assert_eq!(flops.head, 2 * 128_256 * 4096);
        assert_eq!(flops.total(), 15_009_316_864 + 524_288_000);
        // Without attention: the simple formula less the embedding and the norms.
        let left = 2 * (128_256 * 4096 + 65 * 4096);
        assert_eq!(LLAMA3_8B.flops(0).total(), LLAMA3_8B.simple_flops() - left);
    }

    #[test]
    fn a_prompt_is_its_tokens_one_by_one() {
        for tokens in [0, 1, 2, 7, 512] {
            let (mut attention, mut projections) = (0, 0);
            for context in 1..=tokens {
                attention += LLAMA3_8B.flops(context).attention;
                projections += LLAMA3_8B.flops(context).projections;
            }
            let prompt = LLAMA3_8B.prompt_flops(tokens);
            assert_eq!((prompt.attention, prompt.projections), (attention, projections), "{tokens} tokens");
        }
    }

    #[test]
    fn unknown_feed_forward_is_eight_widths_squared() {
        let dims = Dims::new(12, 768, 12, 12, 64, 50_257);
        assert_eq!(dims.parameters().feed_forward, 12 * 8 * 768 * 768);
        assert_eq!(dims.with_gated(false).parameters().feed_forward, GPT2.parameters().feed_forward);
    }

    #[test]
    fn absurd_dimensions_saturate_or_are_named() {
        let absurd = Dims::new(usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX);
        assert_eq!(absurd.parameters().total(), u64::MAX);
        assert_eq!(absurd.flops(usize::MAX).total(), u64::MAX);
        assert_eq!(absurd.prompt_flops(usize::MAX).total(), u64::MAX);
        assert_eq!(absurd.kv_bytes_per_position(KvType::F32, KvType::Q8_0), u64::MAX);
        let message = |dims: Dims| dims.validate().unwrap_err().to_string();
        assert_eq!(message(Dims::new(1, 8, 1, 0, 8, 8)), "kv_heads is 0, it must be at least 1");
        assert_eq!(message(Dims::new(1, 8, 3, 2, 8, 8)), "3 heads do not divide among 2 kv_heads");
        assert!(message(LLAMA3_8B.with_experts(2, 3, 0)).contains("experts_used is 3"));
    }
}
