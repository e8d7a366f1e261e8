//! What decoders have in common.

use super::{Built, Decoder, Network};
use crate::{
    Array,
    config::{Config, most},
    kv::CacheShape,
    linear::{Embedding, Linear, Matrix},
    rope::Rope,
    step::Step,
    weights::{Plan, Weight},
};
use infer_core::{Result, cost::Dims};

/// The sizes of a decoder.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) inner: usize,
    pub(super) vocab: usize,
    pub(super) eps: f32,
}

impl Sizes {
    /// Reads them by the names that all families use.
    pub(super) fn read(config: &Config) -> Result<Self> {
        let width = config.size("hidden_size", most::WIDTH)?;
        let heads = config.size("num_attention_heads", most::HEADS)?;
        let kv_heads = config.optional_size("num_key_value_heads", most::HEADS)?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            let message = format!(
                "`num_attention_heads` is {heads}, which does not divide among {kv_heads} `num_key_value_heads`"
            );
            return Err(config.invalid(message));
        }
        let head_dim = match config.optional_size("head_dim", most::HEAD_DIM)? {
            Some(head_dim) => head_dim,
            None if width.is_multiple_of(heads) => width / heads,
            None => {
                let message =
                    format!("`hidden_size` is {width}, which does not divide among {heads} `num_attention_heads`");
                return Err(config.invalid(message));
            }
        };
        Ok(Self {
            layers: config.size("num_hidden_layers", most::LAYERS)?,
            width,
            heads,
            kv_heads,
            head_dim,
            inner: config.size("intermediate_size", most::INNER)?,
            vocab: config.size("vocab_size", most::VOCAB)?,
            eps: config.positive("rms_norm_eps")? as f32,
        })
    }

    /// How many numbers of a head are turned by its position.
    pub(super) fn rotated(&self, config: &Config, share: f64) -> Result<usize> {
        // As Python's `int` does it.
        let dims = (self.head_dim as f64 * share) as usize;
        if dims == 0 || dims > self.head_dim || !dims.is_multiple_of(2) {
            let message = format!(
                "of heads of {} numbers {dims} are to be turned by their position, which goes in pairs",
                self.head_dim
            );
            return Err(config.invalid(message));
        }
        Ok(dims)
    }

    /// The window of each layer, where `layer_types` says which have one, of `sliding_window` positions.
    pub(super) fn windows(&self, config: &Config) -> Result<Option<Vec<Option<usize>>>> {
        let Some(types) = config.texts("layer_types", self.layers)? else { return Ok(None) };
        let window = |kind: &str| match kind {
            "full_attention" => Ok(None),
            "sliding_attention" => config.size("sliding_window", most::POSITIONS).map(Some),
            other => {
                let known = "full_attention and sliding_attention are";
                Err(config.unsupported(format!("`layer_types` has a layer of the kind {other:?}; supported {known}")))
            }
        };
        types.into_iter().map(window).collect::<Result<_>>().map(Some)
    }

    /// Of a decoder without biases, whose output layer is its own.
    pub(super) fn dims(&self) -> Dims {
        let Self { layers, width, heads, kv_heads, head_dim, vocab, .. } = *self;
        Dims::new(layers, width, heads, kv_heads, head_dim, vocab).with_feed_forward(self.inner)
    }

    /// What a layer keeps that sees so many positions.
    pub(super) fn cache(&self, window: Option<usize>) -> CacheShape {
        CacheShape { kv_heads: self.kv_heads, head_dim: self.head_dim, window }
    }
}

/// A layer of a decoder.
pub(super) trait Block {
    fn forward<'s>(&self, x: Array<'s>, layer: usize, step: &mut Step<'_, 's>) -> Array<'s>;
}

/// An embedding, layers, a norm and an output layer.
pub(super) struct Transformer<B> {
    embedding: Embedding,
    embedding_scale: Option<f32>,
    blocks: Vec<B>,
    norm: RmsNorm,
    head: Matrix,
    shapes: Vec<CacheShape>,
}

impl<B: Block + 'static> Transformer<B> {
    /// Plans one by the names that all families use. The output layer is the embedding where it is `tied`.
    pub(super) fn plan(
        sizes: &Sizes,
        plan: &mut Plan<'_>,
        tied: bool,
        norm: impl Fn(&mut Plan<'_>, &str) -> RmsNorm,
        mut block: impl FnMut(&mut Plan<'_>, usize, &str) -> (B, CacheShape),
    ) -> Self {
        let Sizes { vocab, width, .. } = *sizes;
        let embedding = plan.embedding("model.embed_tokens", vocab, width);
        let layers = (0..sizes.layers).map(|layer| block(plan, layer, &format!("model.layers.{layer}")));
        let (blocks, shapes) = layers.unzip();
        let norm = norm(plan, "model.norm");
        let head = if tied { embedding.matrix.clone() } else { plan.linear("lm_head", width, vocab, false).matrix };
        // Older files have the angles of rotary positions; and an output layer that the settings say is not used.
        plan.ignore(|name| name.ends_with("rotary_emb.inv_freq") || (tied && name == "lm_head.weight"));
        Self { embedding, embedding_scale: None, blocks, norm, head, shapes }
    }

    /// With rows of the embedding that are multiplied first.
    pub(super) fn with_embedding_scale(self, scale: f32) -> Self {
        Self { embedding_scale: Some(scale), ..self }
    }

    /// With what is known of it.
    pub(super) fn built(self, dims: Dims, context: usize) -> Built {
        Built { network: Network::Decoder(Box::new(self)), dims, context }
    }
}

impl<B: Block> Decoder for Transformer<B> {
    fn layers(&self) -> &[CacheShape] {
        &self.shapes
    }

    fn forward<'s>(&self, step: &mut Step<'_, 's>) -> Array<'s> {
        let x = self.embedding.forward(step.tokens());
        let x = self.embedding_scale.map_or(x, |scale| x * scale);
        let x = self.blocks.iter().enumerate().fold(x, |x, (layer, block)| block.forward(x, layer, step));
        self.norm.forward(x)
    }

    fn head<'s>(&self, hidden: Array<'s>) -> Array<'s> {
        self.head.times(hidden)
    }
}

/// `x / rms(x) × w` (Zhang and Sennrich, arXiv:1910.07467).
pub(super) struct RmsNorm {
    weight: Weight,
    eps: f32,
}

impl RmsNorm {
    pub(super) fn plan(plan: &mut Plan<'_>, path: &str, width: usize, eps: f32) -> Self {
        Self { weight: plan.tensor(&format!("{path}.weight"), &[width]), eps }
    }

    /// With 1 + w in the place of w.
    pub(super) fn plan_around_one(plan: &mut Plan<'_>, path: &str, width: usize, eps: f32) -> Self {
        let weight = plan.tensor(&format!("{path}.weight"), &[width]);
        Self { weight: plan.computed(move |scope| scope.enter(weight.owned()) + 1.0), eps }
    }

    pub(super) fn forward<'s>(&self, x: Array<'s>) -> Array<'s> {
        x.rms_norm(self.weight.owned(), self.eps)
    }
}

/// What is let through of the inner width, and what it is multiplied with: `down(f(gate(x)) × up(x))` (Shazeer, arXiv:2002.05202).
pub(super) struct GatedMlp {
    gate: Linear,
    up: Linear,
    down: Linear,
}

impl GatedMlp {
    pub(super) fn plan(plan: &mut Plan<'_>, path: &str, sizes: &Sizes, has_bias: bool) -> Self {
        let Sizes { width, inner, .. } = *sizes;
        Self {
            gate: plan.linear(&format!("{path}.gate_proj"), width, inner, has_bias),
            up: plan.linear(&format!("{path}.up_proj"), width, inner, has_bias),
            down: plan.linear(&format!("{path}.down_proj"), inner, width, has_bias),
        }
    }

    pub(super) fn forward<'s>(&self, x: Array<'s>, activation: impl Fn(Array<'s>) -> Array<'s>) -> Array<'s> {
        self.down.forward(activation(self.gate.forward(x)) * self.up.forward(x))
    }
}

/// Attention in which several heads of queries share one of keys and values (Ainslie et al., arXiv:2305.13245).
pub(super) struct Attention {
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    qk_norms: Option<[RmsNorm; 2]>,
    rope: Rope,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
    scale: f32,
}

impl Attention {
    /// Without biases and norms, and with scores that are divided by √head_dim.
    pub(super) fn plan(plan: &mut Plan<'_>, path: &str, sizes: &Sizes, rope: &Rope) -> Self {
        Self::plan_biased(plan, path, sizes, rope, false, false)
    }

    /// With biases of queries, keys and values, and of what comes out.
    pub(super) fn plan_biased(
        plan: &mut Plan<'_>,
        path: &str,
        sizes: &Sizes,
        rope: &Rope,
        qkv: bool,
        output: bool,
    ) -> Self {
        let Sizes { width, heads, kv_heads, head_dim, .. } = *sizes;
        Self {
            q: plan.linear(&format!("{path}.q_proj"), width, heads * head_dim, qkv),
            k: plan.linear(&format!("{path}.k_proj"), width, kv_heads * head_dim, qkv),
            v: plan.linear(&format!("{path}.v_proj"), width, kv_heads * head_dim, qkv),
            o: plan.linear(&format!("{path}.o_proj"), heads * head_dim, width, output),
            qk_norms: None,
            rope: rope.clone(),
            heads: heads as i32,
            kv_heads: kv_heads as i32,
            head_dim: head_dim as i32,
            scale: (head_dim as f32).powf(-0.5),
        }
    }

    /// With queries and keys that are normed, head by head, before they are turned.
    pub(super) fn with_qk_norms(self, norms: [RmsNorm; 2]) -> Self {
        Self { qk_norms: Some(norms), ..self }
    }

    /// With scores that are multiplied with this.
    pub(super) fn with_scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    pub(super) fn forward<'s>(&self, x: Array<'s>, layer: usize, step: &mut Step<'_, 's>) -> Array<'s> {
        let Self { heads, kv_heads, head_dim, .. } = *self;
        let q = self.q.forward(x).reshape(&[-1, heads, head_dim]);
        let k = self.k.forward(x).reshape(&[-1, kv_heads, head_dim]);
        let v = self.v.forward(x).reshape(&[-1, kv_heads, head_dim]);
        let (q, k) = match &self.qk_norms {
            Some([of_q, of_k]) => (of_q.forward(q), of_k.forward(k)),
            None => (q, k),
        };
        let (q, k) = (step.rope(q, &self.rope), step.rope(k, &self.rope));
        self.o.forward(step.attend(layer, q, k, v, self.scale))
    }
}
