//! BERT (Devlin et al., arXiv:1810.04805), and what was made of it to give vectors for texts: MiniLM (Wang et al., arXiv:2002.10957).

use super::{Built, Network};
use crate::{
    Array, DType, Mask, Scope,
    config::{Config, most},
    linear::{Embedding, Linear},
    weights::{Plan, Weight},
};
use infer_core::{
    Result,
    cost::{Biases, Dims},
};

/// An encoder: every token of a text sees all others.
pub(crate) struct Bert {
    tokens: Embedding,
    positions: Embedding,
    kinds: Embedding,
    norm: LayerNorm,
    layers: Vec<Layer>,
    width: usize,
}

pub(super) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    config.only("position_embedding_type", &["absolute"])?;
    let activation = Activation::read(config)?;
    let size = |name: &str, most: usize| config.size(name, most);
    let (width, heads) = (size("hidden_size", most::WIDTH)?, size("num_attention_heads", most::HEADS)?);
    if !width.is_multiple_of(heads) {
        let message = format!("`hidden_size` is {width}, which does not divide among {heads} `num_attention_heads`");
        return Err(config.invalid(message));
    }
    let (count, inner) = (size("num_hidden_layers", most::LAYERS)?, size("intermediate_size", most::INNER)?);
    let (vocab, context) = (size("vocab_size", most::VOCAB)?, size("max_position_embeddings", most::POSITIONS)?);
    let kinds = config.optional_size("type_vocab_size", most::VOCAB)?.unwrap_or(2);
    let eps = config.optional_positive("layer_norm_eps")?.unwrap_or(1e-12) as f32;
    // Where a head was trained on top, the encoder's weights are in a part of their own.
    if plan.has("bert.embeddings.word_embeddings.weight") {
        plan.within("bert.");
    }
    let norm = |plan: &mut Plan<'_>, path: &str| LayerNorm::plan(plan, path, width, eps);
    let bert = Bert {
        tokens: plan.embedding("embeddings.word_embeddings", vocab, width),
        positions: plan.embedding("embeddings.position_embeddings", context, width),
        kinds: plan.embedding("embeddings.token_type_embeddings", kinds, width),
        norm: norm(plan, "embeddings.LayerNorm"),
        layers: (0..count)
            .map(|layer| {
                let path = format!("encoder.layer.{layer}");
                Layer {
                    attention: SelfAttention::plan(plan, &format!("{path}.attention"), width, heads),
                    attention_norm: norm(plan, &format!("{path}.attention.output.LayerNorm")),
                    up: plan.linear(&format!("{path}.intermediate.dense"), width, inner, true),
                    activation,
                    down: plan.linear(&format!("{path}.output.dense"), inner, width, true),
                    norm: norm(plan, &format!("{path}.output.LayerNorm")),
                }
            })
            .collect(),
        width,
    };
    // The numbers of the positions, and what was trained on top.
    plan.ignore(|name| name == "embeddings.position_ids" || name.starts_with("pooler."));
    plan.ignore_part("cls.");
    let dims = Dims::new(count, width, heads, heads, width / heads, vocab)
        .with_feed_forward(inner)
        .with_gated(false)
        .with_tied(true)
        .with_encoder(true)
        .with_positions(context)
        .with_biases(Biases::All);
    Ok(Built { network: Network::Encoder(Box::new(bert)), dims, context })
}

impl Bert {
    /// How many numbers a token becomes.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Hidden states, `[texts, length, width]`, of texts of tokens `[texts, length]`. `mask`, of the same shape, is true where there is a token and
    /// false behind the end of a text. `kinds`, of the same shape, says of each token which of two texts it is of; all are of the first where
    /// there is none.
    pub(crate) fn forward<'s>(
        &self,
        scope: &'s Scope<'_>,
        tokens: Array<'s>,
        mask: Option<Array<'s>>,
        kinds: Option<Array<'s>>,
        length: usize,
    ) -> Array<'s> {
        let positions = scope.arange(0, length as i32, DType::U32);
        let kinds = kinds.unwrap_or_else(|| scope.zeros(&[1], DType::U32));
        let x = self.tokens.forward(tokens) + self.positions.forward(positions) + self.kinds.forward(kinds);
        // A mask for every head and every token that looks.
        let mask = mask.map(|mask| mask.expand_dims(1).expand_dims(1));
        let shape = [-1, length as i32];
        self.layers.iter().fold(self.norm.forward(x), |x, layer| layer.forward(x, mask, shape))
    }
}

struct Layer {
    attention: SelfAttention,
    attention_norm: LayerNorm,
    up: Linear,
    activation: Activation,
    down: Linear,
    norm: LayerNorm,
}

impl Layer {
    /// What comes in is added to what is computed of it, and the sum is normed: the other way round than in later models.
    fn forward<'s>(&self, x: Array<'s>, mask: Option<Array<'s>>, shape: [i32; 2]) -> Array<'s> {
        let x = self.attention_norm.forward(x + self.attention.forward(x, mask, shape));
        let inner = self.activation.of(self.up.forward(x));
        self.norm.forward(x + self.down.forward(inner))
    }
}

struct SelfAttention {
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    heads: i32,
    head_dim: i32,
}

impl SelfAttention {
    fn plan(plan: &mut Plan<'_>, path: &str, width: usize, heads: usize) -> Self {
        let mut linear = |name: &str| plan.linear(&format!("{path}.{name}"), width, width, true);
        let [q, k, v, o] = ["self.query", "self.key", "self.value", "output.dense"].map(&mut linear);
        Self { q, k, v, o, heads: heads as i32, head_dim: (width / heads) as i32 }
    }

    fn forward<'s>(&self, x: Array<'s>, mask: Option<Array<'s>>, shape: [i32; 2]) -> Array<'s> {
        let Self { heads, head_dim, .. } = *self;
        let [texts, length] = shape;
        let by_head = |x: Array<'s>| x.reshape(&[texts, length, heads, head_dim]).transpose(&[0, 2, 1, 3]);
        let (q, k, v) = (by_head(self.q.forward(x)), by_head(self.k.forward(x)), by_head(self.v.forward(x)));
        let mask = mask.map_or(Mask::None, Mask::Array);
        let attended = q.attention(k, v, (head_dim as f32).powf(-0.5), mask);
        self.o.forward(attended.transpose(&[0, 2, 1, 3]).reshape(&[texts, length, heads * head_dim]))
    }
}

/// `(x - mean(x)) / deviation(x) × w + b` (Ba et al., arXiv:1607.06450).
struct LayerNorm {
    weight: Weight,
    bias: Weight,
    eps: f32,
}

impl LayerNorm {
    fn plan(plan: &mut Plan<'_>, path: &str, width: usize, eps: f32) -> Self {
        let mut part = |name: &str| plan.tensor(&format!("{path}.{name}"), &[width]);
        Self { weight: part("weight"), bias: part("bias"), eps }
    }

    fn forward<'s>(&self, x: Array<'s>) -> Array<'s> {
        x.layer_norm(self.weight.owned(), self.bias.owned(), self.eps)
    }
}

/// What the inner width goes through.
#[derive(Clone, Copy)]
enum Activation {
    Gelu,
    GeluTanh,
    Relu,
}

impl Activation {
    fn read(config: &Config) -> Result<Self> {
        const KNOWN: &[(&str, Activation)] = &[
            ("gelu", Activation::Gelu),
            ("gelu_new", Activation::GeluTanh),
            ("gelu_pytorch_tanh", Activation::GeluTanh),
            ("relu", Activation::Relu),
        ];
        let names: Vec<_> = KNOWN.iter().map(|(name, _)| *name).collect();
        config.only("hidden_act", &names)?;
        let name = config.text("hidden_act")?.unwrap_or("gelu");
        Ok(KNOWN.iter().find(|(known, _)| *known == name).map_or(Self::Gelu, |(_, activation)| *activation))
    }

    fn of<'s>(self, x: Array<'s>) -> Array<'s> {
        match self {
            Self::Gelu => x.gelu(),
            Self::GeluTanh => x.gelu_tanh(),
            Self::Relu => x.maximum(0.0),
        }
    }
}
