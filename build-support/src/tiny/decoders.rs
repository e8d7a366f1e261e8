//! Decoders: one token after the other.

use super::maker::Maker;
use super::vocabulary;
use crate::gguf::{Field, Gguf};

/// Blocks of [`llama`].
pub const LAYERS: u32 = 2;
/// Numbers of a hidden state, in all tiny models.
pub const WIDTH: u64 = 64;
/// Attention heads, in all tiny models.
pub const HEADS: u32 = 4;
/// Key/value heads of the decoders.
pub const KV_HEADS: u32 = 2;
/// Numbers between the two halves of a feed-forward network.
pub const INNER: u64 = 96;
/// Tokens of the decoders: 256 bytes, `<s>`, `</s>` and `<|im_end|>`.
pub const VOCAB: u64 = vocabulary::BYTES;
/// Positions that the sliding layers of [`gemma3`] look back.
pub const WINDOW: u32 = 32;

/// Numbers of one head's keys and values.
const HEAD: u64 = WIDTH / HEADS as u64;
const KV_WIDTH: u64 = HEAD * KV_HEADS as u64;

/// A decoder of the architecture `llama`, with a context of 512.
#[must_use]
pub fn llama() -> Gguf {
    let mut model = decoder("tiny-llama", "llama", LAYERS);
    model.fields([
        ("attention.head_count_kv", Field::U32(KV_HEADS)),
        ("rope.dimension_count", Field::U32(HEAD as u32)),
        ("rope.freq_base", Field::F32(10_000.0)),
        ("vocab_size", Field::U32(VOCAB as u32)),
    ]);
    for layer in 0..LAYERS {
        attention(&mut model, layer);
        feed_forward(&mut model, layer);
    }
    model.done()
}

/// A decoder of the architecture `gemma3`: its layers 0 and 2 see the last [`WINDOW`] positions, 1 and 3 see all.
#[must_use]
pub fn gemma3() -> Gguf {
    let layers = 4;
    let mut model = decoder("tiny-gemma3", "gemma3", layers);
    model.fields([
        ("attention.head_count_kv", Field::U32(KV_HEADS)),
        ("attention.key_length", Field::U32(HEAD as u32)),
        ("attention.value_length", Field::U32(HEAD as u32)),
        ("attention.sliding_window", Field::U32(WINDOW)),
        ("attention.sliding_window_pattern", Field::U32(2)),
        ("rope.freq_base", Field::F32(100_000.0)),
        ("rope.freq_base_swa", Field::F32(10_000.0)),
    ]);
    for layer in 0..layers {
        attention(&mut model, layer);
        head_norms(&mut model, layer);
        model.norm(&format!("blk.{layer}.post_attention_norm.weight"), WIDTH);
        feed_forward(&mut model, layer);
        model.norm(&format!("blk.{layer}.post_ffw_norm.weight"), WIDTH);
    }
    model.done()
}

/// A decoder of the architecture `mamba`: every layer has a state, and no layer a cache.
#[must_use]
pub fn mamba() -> Gguf {
    const STATE: u64 = 16;
    const RANK: u64 = 4;
    const KERNEL: u64 = 4;
    // The architecture has twice the width inside.
    let inner = 2 * WIDTH;
    let mut model = decoder("tiny-mamba", "mamba", LAYERS);
    model.fields([
        ("attention.head_count", Field::U32(0)),
        ("feed_forward_length", Field::U32(0)),
        ("ssm.conv_kernel", Field::U32(KERNEL as u32)),
        ("ssm.inner_size", Field::U32(inner as u32)),
        ("ssm.state_size", Field::U32(STATE as u32)),
        ("ssm.time_step_rank", Field::U32(RANK as u32)),
    ]);
    for layer in 0..LAYERS {
        let name = |name: &str| format!("blk.{layer}.{name}");
        model.norm(&name("attn_norm.weight"), WIDTH);
        model.matrix(&name("ssm_in.weight"), [WIDTH, 2 * inner], 1.0);
        model.matrix(&name("ssm_conv1d.weight"), [KERNEL, inner], 1.5);
        model.around(&name("ssm_conv1d.bias"), &[inner], 0.0, 0.1);
        model.matrix(&name("ssm_x.weight"), [inner, RANK + 2 * STATE], 1.5);
        model.matrix(&name("ssm_dt.weight"), [RANK, inner], 0.5);
        // A time step of about 0.13, and rates of at most 1: what was read is remembered for tens of tokens.
        model.around(&name("ssm_dt.bias"), &[inner], -2.0, 0.5);
        model.around(&name("ssm_a"), &[STATE, inner], -0.5, 0.45);
        model.around(&name("ssm_d"), &[inner], 1.0, 0.2);
        model.matrix(&name("ssm_out.weight"), [inner, WIDTH], 2.0);
    }
    model.done()
}

/// A decoder of the architecture `lfm2`: its layers 0 and 2 are recurrent (short convolutions), 1 and 3 attention.
#[must_use]
pub fn lfm2() -> Gguf {
    const KERNEL: u64 = 3;
    let kv_heads = [0, KV_HEADS, 0, KV_HEADS];
    let mut model = decoder("tiny-lfm2", "lfm2", kv_heads.len() as u32);
    model.fields([
        ("attention.head_count_kv", Field::U32s(kv_heads.to_vec())),
        ("rope.freq_base", Field::F32(10_000.0)),
        ("shortconv.l_cache", Field::U32(KERNEL as u32)),
        ("vocab_size", Field::U32(VOCAB as u32)),
    ]);
    for (layer, kv_heads) in (0..).zip(kv_heads) {
        if kv_heads > 0 {
            attention(&mut model, layer);
            head_norms(&mut model, layer);
        } else {
            let name = |name: &str| format!("blk.{layer}.{name}.weight");
            model.norm(&name("attn_norm"), WIDTH);
            model.matrix(&name("shortconv.conv"), [KERNEL, WIDTH], 1.0);
            model.matrix(&name("shortconv.in_proj"), [WIDTH, 3 * WIDTH], 1.0);
            model.matrix(&name("shortconv.out_proj"), [WIDTH, WIDTH], 1.0);
        }
        feed_forward(&mut model, layer);
    }
    // The architecture's files call the last norm by the name of the first one of others.
    model.gguf().tensor("output_norm.weight").name = "token_embd_norm.weight".into();
    model.done()
}

/// A decoder of the architecture `gpt2`, which has a learned embedding for each of its `positions`. It is in no cache.
#[must_use]
pub fn gpt2(positions: u64) -> Gguf {
    let mut model = decoder("tiny-gpt2", "gpt2", 1);
    model
        .fields([("context_length", Field::U32(positions as u32)), ("attention.layer_norm_epsilon", Field::F32(1e-5))]);
    model.gguf().remove("gpt2.attention.layer_norm_rms_epsilon");
    model.table("position_embd.weight", [WIDTH, positions], 0.5);
    model.around("output_norm.bias", &[WIDTH], 0.0, 0.1);
    for (name, width) in [("attn_norm", WIDTH), ("ffn_norm", WIDTH)] {
        model.norm(&format!("blk.0.{name}.weight"), width);
        model.around(&format!("blk.0.{name}.bias"), &[width], 0.0, 0.1);
    }
    for (name, from, to) in [
        ("attn_qkv", WIDTH, 3 * WIDTH),
        ("attn_output", WIDTH, WIDTH),
        ("ffn_up", WIDTH, INNER),
        ("ffn_down", INNER, WIDTH),
    ] {
        model.matrix(&format!("blk.0.{name}.weight"), [from, to], 1.0);
        model.around(&format!("blk.0.{name}.bias"), &[to], 0.0, 0.1);
    }
    model.done()
}

/// What all decoders have.
fn decoder(name: &'static str, architecture: &'static str, layers: u32) -> Maker {
    let mut model = Maker::new(name, architecture);
    model.fields([
        ("context_length", Field::U32(512)),
        ("embedding_length", Field::U32(WIDTH as u32)),
        ("block_count", Field::U32(layers)),
        ("feed_forward_length", Field::U32(INNER as u32)),
        ("attention.head_count", Field::U32(HEADS)),
        ("attention.layer_norm_rms_epsilon", Field::F32(1e-5)),
    ]);
    vocabulary::bytes(model.gguf());
    model.table("token_embd.weight", [WIDTH, VOCAB], 0.5);
    model.norm("output_norm.weight", WIDTH);
    // Logits of size 3: the first of 259 is then well ahead of the second as a rule.
    model.matrix("output.weight", [WIDTH, VOCAB], 3.0);
    model
}

fn attention(model: &mut Maker, layer: u32) {
    let name = |name: &str| format!("blk.{layer}.{name}.weight");
    model.norm(&name("attn_norm"), WIDTH);
    // More than 1, so that some positions count more than others.
    model.matrix(&name("attn_q"), [WIDTH, WIDTH], 1.5);
    model.matrix(&name("attn_k"), [WIDTH, KV_WIDTH], 1.5);
    model.matrix(&name("attn_v"), [WIDTH, KV_WIDTH], 1.0);
    model.matrix(&name("attn_output"), [WIDTH, WIDTH], 2.0);
}

fn head_norms(model: &mut Maker, layer: u32) {
    model.norm(&format!("blk.{layer}.attn_q_norm.weight"), HEAD);
    model.norm(&format!("blk.{layer}.attn_k_norm.weight"), HEAD);
}

fn feed_forward(model: &mut Maker, layer: u32) {
    let name = |name: &str| format!("blk.{layer}.{name}.weight");
    model.norm(&name("ffn_norm"), WIDTH);
    model.matrix(&name("ffn_gate"), [WIDTH, INNER], 1.0);
    model.matrix(&name("ffn_up"), [WIDTH, INNER], 1.0);
    model.matrix(&name("ffn_down"), [INNER, WIDTH], 1.5);
}
