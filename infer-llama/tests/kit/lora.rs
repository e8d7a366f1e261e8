//! Adapters for the tiny llama, as many as there are seeds.

use super::gguf::{Field, Gguf, Tensor};
use build_support::tiny::{INNER, LAYERS, WIDTH};
use test_kit::Random;

const RANK: u64 = 4;

/// Two matrices for each of two matrices a layer.
pub(crate) fn llama(seed: u64) -> Gguf {
    let mut gguf = Gguf::new();
    gguf.set("general.type", Field::text("adapter"))
        .set("general.architecture", Field::text("llama"))
        .set("general.name", Field::text("tiny adapter"))
        .set("adapter.type", Field::text("lora"))
        .set("adapter.lora.alpha", Field::F32(8.0));
    let mut random = Random(seed);
    for layer in 0..LAYERS {
        for (name, inputs, outputs) in [("attn_q", WIDTH, WIDTH), ("ffn_up", WIDTH, INNER)] {
            let name = format!("blk.{layer}.{name}.weight");
            for (end, shape) in [("lora_a", [inputs, RANK]), ("lora_b", [RANK, outputs])] {
                let numbers = (0..shape[0] * shape[1]).map(|_| 0.6 * (random.below(1001) as f32 / 1000.0 - 0.5));
                gguf.tensors.push(Tensor::f32(format!("{name}.{end}"), &shape, numbers));
            }
        }
    }
    gguf
}
