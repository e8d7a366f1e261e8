//! Encoders: a text at once, without a cache.

use super::decoders::{HEADS, INNER, LAYERS, WIDTH};
use super::maker::Maker;
use super::vocabulary;
use crate::gguf::{Field, Gguf};

/// What [`rank`] tells apart.
pub const LABELS: [&str; 3] = ["negative", "neutral", "positive"];

/// Numbers of llama.cpp for how the tokens of a text become one result.
const MEAN: u32 = 1;
const RANK: u32 = 4;

/// An encoder of the architecture `bert`, with a context of 128: the mean of its tokens' states is the embedding.
#[must_use]
pub fn bert() -> Gguf {
    encoder("tiny-bert", MEAN).done()
}

/// An encoder of the architecture `bert` with a classification head: a number for each of [`LABELS`].
#[must_use]
pub fn rank() -> Gguf {
    let mut model = encoder("tiny-rank", RANK);
    let labels = LABELS.map(|label| label.as_bytes().to_vec()).to_vec();
    model.fields([("classifier.output_labels", Field::Strs(labels))]);
    linear(&mut model, "cls", WIDTH, WIDTH, 1.0);
    linear(&mut model, "cls.output", WIDTH, LABELS.len() as u64, 2.0);
    model.done()
}

fn encoder(name: &'static str, pooling: u32) -> Maker {
    const POSITIONS: u64 = 128;
    let mut model = Maker::new(name, "bert");
    model.fields([
        ("context_length", Field::U32(POSITIONS as u32)),
        ("embedding_length", Field::U32(WIDTH as u32)),
        ("block_count", Field::U32(LAYERS)),
        ("feed_forward_length", Field::U32(INNER as u32)),
        ("attention.head_count", Field::U32(HEADS)),
        ("attention.layer_norm_epsilon", Field::F32(1e-5)),
        ("attention.causal", Field::Bool(false)),
        ("pooling_type", Field::U32(pooling)),
    ]);
    let vocab = vocabulary::pieces(model.gguf());
    model.table("token_embd.weight", [WIDTH, vocab], 1.0);
    model.table("token_types.weight", [WIDTH, 2], 0.1);
    model.table("position_embd.weight", [WIDTH, POSITIONS], 0.5);
    layer_norm(&mut model, "token_embd_norm");
    for layer in 0..LAYERS {
        let name = |name: &str| format!("blk.{layer}.{name}");
        linear(&mut model, &name("attn_q"), WIDTH, WIDTH, 1.5);
        linear(&mut model, &name("attn_k"), WIDTH, WIDTH, 1.5);
        linear(&mut model, &name("attn_v"), WIDTH, WIDTH, 1.0);
        linear(&mut model, &name("attn_output"), WIDTH, WIDTH, 2.0);
        layer_norm(&mut model, &name("attn_output_norm"));
        linear(&mut model, &name("ffn_up"), WIDTH, INNER, 1.0);
        linear(&mut model, &name("ffn_down"), INNER, WIDTH, 1.5);
        layer_norm(&mut model, &name("layer_output_norm"));
    }
    model
}

fn linear(model: &mut Maker, name: &str, from: u64, to: u64, gain: f32) {
    model.matrix(&format!("{name}.weight"), [from, to], gain);
    model.around(&format!("{name}.bias"), &[to], 0.0, 0.1);
}

fn layer_norm(model: &mut Maker, name: &str) {
    model.norm(&format!("{name}.weight"), WIDTH);
    model.around(&format!("{name}.bias"), &[WIDTH], 0.0, 0.1);
}
