//! LoRA adapters: two thin matrices beside a weight, whose product is added to it.

use super::decoders::{LAYERS, WIDTH};
use super::maker::Maker;
use crate::gguf::{Field, Gguf};

const RANK: u64 = 4;

/// An adapter for [`llama`](super::llama) that changes its queries and its attention's output.
#[must_use]
pub fn adapter() -> Gguf {
    lora("tiny-lora", WIDTH)
}

/// An adapter for a `llama` of twice that width.
#[must_use]
pub fn other_adapter() -> Gguf {
    lora("tiny-lora-other", 2 * WIDTH)
}

fn lora(name: &'static str, width: u64) -> Gguf {
    let mut adapter = Maker::new(name, "llama");
    adapter
        .gguf()
        .set("general.type", Field::text("adapter"))
        .set("adapter.type", Field::text("lora"))
        // The product counts alpha / rank times.
        .set("adapter.lora.alpha", Field::F32(2.0 * RANK as f32));
    for layer in 0..LAYERS {
        for weight in ["attn_q", "attn_output"] {
            adapter.matrix(&format!("blk.{layer}.{weight}.weight.lora_a"), [width, RANK], 1.0);
            adapter.matrix(&format!("blk.{layer}.{weight}.weight.lora_b"), [RANK, width], 1.0);
        }
    }
    adapter.done()
}
