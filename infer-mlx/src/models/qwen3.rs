//! Qwen3 (arXiv:2505.09388): Llama whose queries and keys are normed, head by head, before they are turned.

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
use infer_core::Result;

pub(super) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    config.only("hidden_act", &["silu", "swish"])?;
    let sizes = Sizes::read(config)?;
    let tied = config.flag("tie_word_embeddings")?.unwrap_or(false);
    let family = Family { biases: Where::default(), qk_norm: true };
    let rotation = Rotation::read(config, sizes.rotated(config, 1.0)?, None)?;
    let dims = sizes.dims().with_tied(tied).with_qk_norm(true);
    let context = config.optional_size("max_position_embeddings", most::POSITIONS)?.unwrap_or(32_768);
    Ok(family.plan(&sizes, plan, tied, rotation, &vec![None; sizes.layers]).built(dims, context))
}
