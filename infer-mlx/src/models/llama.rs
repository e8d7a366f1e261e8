//! Llama (Touvron et al., arXiv:2302.13971; Llama 3, arXiv:2407.21783), SmolLM2, and Mistral (Jiang et al., arXiv:2310.06825), which is the
//! same network.
//!
//! As in mlx-lm, a layer sees a window of `sliding_window` positions where `layer_types` calls it `sliding_attention`, and everything where there
//! is no `layer_types`.

use super::{
    Built,
    parts::{Attention, Block, GatedMlp, RmsNorm, Sizes, Transformer},
};
use crate::{
    Array,
    config::{Config, most},
    rope::{Rope, Rotation},
    step::Step,
    weights::Plan,
};
use infer_core::{Result, cost::Biases};

pub(super) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    config.only("hidden_act", &["silu", "swish"])?;
    let sizes = Sizes::read(config)?;
    let tied = config.flag("tie_word_embeddings")?.unwrap_or(true);
    let in_attention = config.flag("attention_bias")?.unwrap_or(false);
    let family = Family {
        biases: Where { qkv: in_attention, output: in_attention, mlp: config.flag("mlp_bias")?.unwrap_or(false) },
        qk_norm: false,
    };
    let windows = sizes.windows(config)?.unwrap_or_else(|| vec![None; sizes.layers]);
    let rotation = Rotation::read(config, sizes.rotated(config, 1.0)?, Some(10_000.0))?;
    let dims = sizes.dims().with_tied(tied).with_biases(if in_attention { Biases::Qkv } else { Biases::None });
    let context = config.optional_size("max_position_embeddings", most::POSITIONS)?.unwrap_or(2048);
    Ok(family.plan(&sizes, plan, tied, rotation, &windows).built(dims, context))
}

/// How a family of models departs from the first Llama.
#[derive(Default)]
pub(super) struct Family {
    pub(super) biases: Where,
    /// Queries and keys are normed head by head.
    pub(super) qk_norm: bool,
}

/// Which layers add a bias.
#[derive(Default)]
pub(super) struct Where {
    pub(super) qkv: bool,
    pub(super) output: bool,
    pub(super) mlp: bool,
}

impl Family {
    pub(super) fn plan(
        &self,
        sizes: &Sizes,
        plan: &mut Plan<'_>,
        tied: bool,
        rotation: Rotation,
        windows: &[Option<usize>],
    ) -> Transformer<LlamaBlock> {
        let rope = rotation.plan(plan);
        let norm = |plan: &mut Plan<'_>, path: &str| RmsNorm::plan(plan, path, sizes.width, sizes.eps);
        Transformer::plan(sizes, plan, tied, norm, |plan, layer, path| {
            let block = LlamaBlock {
                norm: norm(plan, &format!("{path}.input_layernorm")),
                attention: self.attention(plan, &format!("{path}.self_attn"), sizes, &rope),
                mlp_norm: norm(plan, &format!("{path}.post_attention_layernorm")),
                mlp: GatedMlp::plan(plan, &format!("{path}.mlp"), sizes, self.biases.mlp),
            };
            (block, sizes.cache(windows[layer]))
        })
    }

    fn attention(&self, plan: &mut Plan<'_>, path: &str, sizes: &Sizes, rope: &Rope) -> Attention {
        let Where { qkv, output, .. } = self.biases;
        let attention = Attention::plan_biased(plan, path, sizes, rope, qkv, output);
        if !self.qk_norm {
            return attention;
        }
        let norms = ["q_norm", "k_norm"];
        let norm = |name| RmsNorm::plan(plan, &format!("{path}.{name}"), sizes.head_dim, sizes.eps);
        attention.with_qk_norms(norms.map(norm))
    }
}

/// Attention and a feed-forward layer, each of what is normed, and added to what was there.
pub(super) struct LlamaBlock {
    norm: RmsNorm,
    attention: Attention,
    mlp_norm: RmsNorm,
    mlp: GatedMlp,
}

impl Block for LlamaBlock {
    fn forward<'s>(&self, x: Array<'s>, layer: usize, step: &mut Step<'_, 's>) -> Array<'s> {
        let x = x + self.attention.forward(self.norm.forward(x), layer, step);
        x + self.mlp.forward(self.mlp_norm.forward(x), Array::silu)
    }
}
