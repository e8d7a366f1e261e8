//! Qwen2 and Qwen2.5 (arXiv:2407.10671, arXiv:2412.15115): Llama with biases on queries, keys and values.

use super::{
    Built,
    llama::{Family, Where},
    parts::Sizes,
};
use crate::{
    config::{Config, most},
    rope::Rotation,
    weights::Plan,
};
use infer_core::{Result, cost::Biases};

pub(super) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    config.only("hidden_act", &["silu", "swish"])?;
    let sizes = Sizes::read(config)?;
    let tied = config.flag("tie_word_embeddings")?.unwrap_or(true);
    let family = Family { biases: Where { qkv: true, ..Where::default() }, qk_norm: false };
    let rotation = Rotation::read(config, sizes.rotated(config, 1.0)?, Some(1_000_000.0))?;
    let dims = sizes.dims().with_tied(tied).with_biases(Biases::Qkv);
    let context = config.optional_size("max_position_embeddings", most::POSITIONS)?.unwrap_or(32_768);
    Ok(family.plan(&sizes, plan, tied, rotation, &vec![None; sizes.layers]).built(dims, context))
}
