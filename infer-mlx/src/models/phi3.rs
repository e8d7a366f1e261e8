//! Phi-3 (arXiv:2404.14219): Llama whose queries, keys and values are made by one matrix, and the gate and what it lets through by another. Of a
//! head a part may be turned by its position, with the factors of LongRoPE.
//!
//! As in mlx-lm, `sliding_window` does not count: every layer sees everything.

use super::{
    Built,
    parts::{Block, RmsNorm, Sizes, Transformer},
};
use crate::{
    Array,
    config::{Config, most},
    linear::Linear,
    rope::{Rope, Rotation},
    step::Step,
    weights::Plan,
};
use infer_core::Result;

pub(super) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    config.only("hidden_act", &["silu", "swish"])?;
    let sizes = Sizes::read(config)?;
    let tied = config.flag("tie_word_embeddings")?.unwrap_or(false);
    let share = config.optional_positive("partial_rotary_factor")?.unwrap_or(1.0);
    let rope = Rotation::read(config, sizes.rotated(config, share)?, Some(10_000.0))?.plan(plan);
    let norm = |plan: &mut Plan<'_>, path: &str| RmsNorm::plan(plan, path, sizes.width, sizes.eps);
    let network = Transformer::plan(&sizes, plan, tied, norm, |plan, _, path| {
        let block = Phi3Block {
            norm: norm(plan, &format!("{path}.input_layernorm")),
            attention: Attention::plan(plan, &format!("{path}.self_attn"), &sizes, &rope),
            mlp_norm: norm(plan, &format!("{path}.post_attention_layernorm")),
            mlp: Mlp::plan(plan, &format!("{path}.mlp"), &sizes),
        };
        (block, sizes.cache(None))
    });
    let context = config.optional_size("max_position_embeddings", most::POSITIONS)?.unwrap_or(131_072);
    Ok(network.built(sizes.dims().with_tied(tied), context))
}

struct Phi3Block {
    norm: RmsNorm,
    attention: Attention,
    mlp_norm: RmsNorm,
    mlp: Mlp,
}

impl Block for Phi3Block {
    fn forward<'s>(&self, x: Array<'s>, layer: usize, step: &mut Step<'_, 's>) -> Array<'s> {
        let x = x + self.attention.forward(self.norm.forward(x), layer, step);
        x + self.mlp.forward(self.mlp_norm.forward(x))
    }
}

struct Attention {
    qkv: Linear,
    o: Linear,
    rope: Rope,
    heads: i32,
    kv_heads: i32,
    head_dim: i32,
}

impl Attention {
    fn plan(plan: &mut Plan<'_>, path: &str, sizes: &Sizes, rope: &Rope) -> Self {
        let Sizes { width, heads, kv_heads, head_dim, .. } = *sizes;
        Self {
            qkv: plan.linear(&format!("{path}.qkv_proj"), width, (heads + 2 * kv_heads) * head_dim, false),
            o: plan.linear(&format!("{path}.o_proj"), heads * head_dim, width, false),
            rope: rope.clone(),
            heads: heads as i32,
            kv_heads: kv_heads as i32,
            head_dim: head_dim as i32,
        }
    }

    fn forward<'s>(&self, x: Array<'s>, layer: usize, step: &mut Step<'_, 's>) -> Array<'s> {
        let Self { heads, kv_heads, head_dim, .. } = *self;
        let all = self.qkv.forward(x).reshape(&[-1, heads + 2 * kv_heads, head_dim]);
        let part = |from, count| all.slice(1, from..from + count);
        let (q, k, v) = (part(0, heads), part(heads, kv_heads), part(heads + kv_heads, kv_heads));
        let (q, k) = (step.rope(q, &self.rope), step.rope(k, &self.rope));
        self.o.forward(step.attend(layer, q, k, v, (head_dim as f32).powf(-0.5)))
    }
}

/// `down(silu(gate) × up)`, of which one matrix makes the two.
struct Mlp {
    gate_up: Linear,
    down: Linear,
    inner: i32,
}

impl Mlp {
    fn plan(plan: &mut Plan<'_>, path: &str, sizes: &Sizes) -> Self {
        let Sizes { width, inner, .. } = *sizes;
        Self {
            gate_up: plan.linear(&format!("{path}.gate_up_proj"), width, 2 * inner, false),
            down: plan.linear(&format!("{path}.down_proj"), inner, width, false),
            inner: inner as i32,
        }
    }

    fn forward<'s>(&self, x: Array<'s>) -> Array<'s> {
        let both = self.gate_up.forward(x);
        let (gate, up) = (both.slice(-1, 0..self.inner), both.slice(-1, self.inner..2 * self.inner));
        self.down.forward(gate.silu() * up)
    }
}
