//! Gemma 3 (arXiv:2503.19786), the part that reads and writes text.
//!
//! Of every `sliding_window_pattern` layers the last sees everything, and is turned slowly; the others see a window. Queries and keys are
//! normed; what attention and the feed-forward layer give is normed too before it is added; a norm multiplies with 1 + w; rows of the
//! embedding are multiplied with √width.

use super::{
    Built,
    parts::{Attention, Block, GatedMlp, RmsNorm, Sizes, Transformer},
};
use crate::{
    Array, DType,
    config::{Config, most},
    rope::{Rope, Rotation},
    step::Step,
    weights::Plan,
};
use infer_core::Result;

/// A model of text.
pub(super) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    plan_text(config.clone(), plan)
}

/// The language model of one that also sees; its eyes are left out.
pub(super) fn build_language_part(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    let vocab = config.optional_size("vocab_size", most::VOCAB)?.unwrap_or(262_208);
    let text = config.part("text_config")?.with("vocab_size", vocab);
    for part in ["vision_tower.", "multi_modal_projector."] {
        plan.ignore_part(part);
    }
    plan.within("language_model.");
    plan_text(text.with_default("num_attention_heads", 8).with_default("num_key_value_heads", 4), plan)
}

fn plan_text(config: Config, plan: &mut Plan<'_>) -> Result<Built> {
    let config = with_defaults(config);
    config.only("hidden_activation", &["gelu_pytorch_tanh"])?;
    for name in ["attn_logit_softcapping", "final_logit_softcapping"] {
        if let Some(cap) = config.value(name) {
            return Err(config.unsupported(format!("`{name}` is {cap}; Gemma 3 is supported without")));
        }
    }
    let sizes = Sizes::read(&config)?;
    let windows = windows(&config, &sizes)?;
    let [local, global] = rotations(&config, sizes.rotated(&config, 1.0)?)?;
    let (local, global) = (local.plan(plan), global.plan(plan));
    let scale = config.positive("query_pre_attn_scalar")?.powf(-0.5) as f32;
    let tied = !plan.has("lm_head.weight");
    let norm = |plan: &mut Plan<'_>, path: &str| RmsNorm::plan_around_one(plan, path, sizes.width, sizes.eps);
    let network = Transformer::plan(&sizes, plan, tied, norm, |plan, layer, path| {
        let rope = if windows[layer].is_some() { &local } else { &global };
        let block = Gemma3Block {
            norm: norm(plan, &format!("{path}.input_layernorm")),
            attention: attention(plan, &format!("{path}.self_attn"), &sizes, rope).with_scale(scale),
            attention_norm: norm(plan, &format!("{path}.post_attention_layernorm")),
            mlp_norm: norm(plan, &format!("{path}.pre_feedforward_layernorm")),
            mlp: GatedMlp::plan(plan, &format!("{path}.mlp"), &sizes, false),
            after_norm: norm(plan, &format!("{path}.post_feedforward_layernorm")),
        };
        (block, sizes.cache(windows[layer]))
    });
    // The root was rounded to bfloat16 when the models were trained.
    let root = half::bf16::from_f64((sizes.width as f64).sqrt()).to_f32();
    let context = config.size("max_position_embeddings", most::POSITIONS)?;
    Ok(network.with_embedding_scale(root).built(sizes.dims().with_tied(tied).with_qk_norm(true), context))
}

/// What a file leaves out is that of the model of a thousand million parameters.
fn with_defaults(config: Config) -> Config {
    let sizes = [
        ("hidden_size", 1152),
        ("num_hidden_layers", 26),
        ("intermediate_size", 6912),
        ("num_attention_heads", 4),
        ("num_key_value_heads", 1),
        ("head_dim", 256),
        ("vocab_size", 262_144),
        ("query_pre_attn_scalar", 256),
        ("sliding_window", 512),
        ("sliding_window_pattern", 6),
        ("max_position_embeddings", 32_768),
    ];
    sizes
        .into_iter()
        .fold(config, |config, (name, size)| config.with_default(name, size))
        .with_default("rms_norm_eps", 1e-6)
}

/// The window of each layer. Newer files have a list of all layers in the place of the pattern.
fn windows(config: &Config, sizes: &Sizes) -> Result<Vec<Option<usize>>> {
    if let Some(windows) = sizes.windows(config)? {
        return Ok(windows);
    }
    let window = config.size("sliding_window", most::POSITIONS)?;
    let pattern = config.size("sliding_window_pattern", most::LAYERS)?;
    Ok((1..=sizes.layers).map(|layer| (!layer.is_multiple_of(pattern)).then_some(window)).collect())
}

/// How layers with a window are turned, and the others. Newer files have both in `rope_parameters`.
fn rotations(config: &Config, dims: usize) -> Result<[Rotation; 2]> {
    let (local, global) = (10_000.0, 1_000_000.0);
    if let Some(newer) =
        config.optional_part("rope_parameters")?.filter(|newer| newer.value("full_attention").is_some())
    {
        let one = |name: &str, base: f64| {
            let part = newer.part(name)?;
            let base = part.optional_positive("rope_theta")?.unwrap_or(base);
            Rotation::scaled(config, &part, dims, base)
        };
        return Ok([one("sliding_attention", local)?, one("full_attention", global)?]);
    }
    let local = Rotation::new(dims, config.optional_positive("rope_local_base_freq")?.unwrap_or(local));
    Ok([local, Rotation::read(config, dims, Some(global))?])
}

fn attention(plan: &mut Plan<'_>, path: &str, sizes: &Sizes, rope: &Rope) -> Attention {
    let attention = Attention::plan(plan, path, sizes, rope);
    let norm = |name| RmsNorm::plan_around_one(plan, &format!("{path}.{name}"), sizes.head_dim, sizes.eps);
    attention.with_qk_norms(["q_norm", "k_norm"].map(norm))
}

struct Gemma3Block {
    norm: RmsNorm,
    attention: Attention,
    attention_norm: RmsNorm,
    mlp_norm: RmsNorm,
    mlp: GatedMlp,
    after_norm: RmsNorm,
}

impl Block for Gemma3Block {
    fn forward<'s>(&self, x: Array<'s>, layer: usize, step: &mut Step<'_, 's>) -> Array<'s> {
        let attended = self.attention.forward(self.norm.forward(x), layer, step);
        let x = add(x, self.attention_norm.forward(attended));
        let fed = self.mlp.forward(self.mlp_norm.forward(x), Array::gelu_tanh);
        add(x, self.after_norm.forward(fed))
    }
}

/// The sum; in half precision, where these models leave its range, as much of it as there is.
fn add<'s>(x: Array<'s>, y: Array<'s>) -> Array<'s> {
    if x.dtype() != DType::F16 {
        return x + y;
    }
    let most = half::f16::MAX.to_f32();
    (x.as_type(DType::F32) + y.as_type(DType::F32)).minimum(most).maximum(-most).as_type(DType::F16)
}
