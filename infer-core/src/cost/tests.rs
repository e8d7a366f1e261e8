//! The counts of models that are published, and of such as cannot be.

use super::*;

const GPT2: Dims = Dims::new(12, 768, 12, 12, 64, 50_257)
    .with_feed_forward(3072)
    .with_gated(false)
    .with_tied(true)
    .with_positions(1024)
    .with_biases(Biases::All);
const LLAMA3_8B: Dims = Dims::new(32, 4096, 32, 8, 128, 128_256).with_feed_forward(14_336);
const LLAMA3_70B: Dims = Dims::new(80, 8192, 64, 8, 128, 128_256).with_feed_forward(28_672);
const QWEN2_0_5B: Dims =
    Dims::new(24, 896, 14, 2, 64, 151_936).with_feed_forward(4864).with_tied(true).with_biases(Biases::Qkv);
const QWEN3_4B: Dims =
    Dims::new(36, 2560, 32, 8, 128, 151_936).with_feed_forward(9728).with_tied(true).with_qk_norm(true);
const MIXTRAL_8X7B: Dims = Dims::new(32, 4096, 32, 8, 128, 32_000).with_feed_forward(14_336).with_experts(8, 2, 0);
const SMOLLM2_135M: Dims = Dims::new(30, 576, 9, 3, 64, 49_152).with_feed_forward(1536).with_tied(true);

/// The counts are those of the published checkpoints.
#[test]
fn parameters_are_those_of_the_published_models() {
    for (dims, parameters) in [
        (GPT2, 124_439_808),
        (LLAMA3_8B, 8_030_261_248),
        (LLAMA3_70B, 70_553_706_496),
        (QWEN2_0_5B, 494_032_768),
        (QWEN3_4B, 4_022_468_096),
        (MIXTRAL_8X7B, 46_702_792_704),
        (SMOLLM2_135M, 134_515_008),
    ] {
        dims.validate().unwrap();
        assert_eq!(dims.parameters().total(), parameters, "{dims:?}");
    }
    assert_eq!(MIXTRAL_8X7B.active_parameters().total(), 12_879_925_248);
}

#[test]
fn kv_cache_of_qwen3_4b() {
    let position = QWEN3_4B.kv_bytes_per_position(KvType::F16, KvType::F16);
    assert_eq!(position, 144 << 10);
    assert_eq!(position * 4096, 576 << 20);
    assert_eq!(QWEN3_4B.kv_bytes_per_position(KvType::Q8_0, KvType::Q8_0), (144 << 10) * 34 / 64);
    assert_eq!(QWEN3_4B.kv_bytes_per_position(KvType::F32, KvType::F16), 216 << 10);
}

#[test]
fn kv_cache_of_the_other_rows() {
    for (dims, bytes) in
        [(GPT2, 36 << 10), (LLAMA3_8B, 128 << 10), (LLAMA3_70B, 320 << 10), (SMOLLM2_135M, 22_528 + 512)]
    {
        assert_eq!(dims.kv_bytes_per_position(KvType::F16, KvType::F16), bytes, "{dims:?}");
    }
}

/// Llama-3-8B, product by product: 2 × rows × columns for each matrix, 4 × heads × head width a position attended to.
#[test]
fn flops_are_every_matrix_product() {
    let flops = LLAMA3_8B.flops(1000);
    assert_eq!(flops.projections, 32 * 2 * (2 * 4096 * 4096 + 2 * 4096 * 1024));
    assert_eq!(flops.feed_forward, 32 * 2 * 3 * 4096 * 14_336);
    assert_eq!(flops.attention, 32 * 4 * 4096 * 1000);
    assert_eq!(flops.head, 2 * 128_256 * 4096);
    assert_eq!(flops.total(), 15_009_316_864 + 524_288_000);
    // Without attention: the simple formula less the embedding and the norms.
    let left = 2 * (128_256 * 4096 + 65 * 4096);
    assert_eq!(LLAMA3_8B.flops(0).total(), LLAMA3_8B.simple_flops() - left);
}

#[test]
fn a_prompt_is_its_tokens_one_by_one() {
    for tokens in [0, 1, 2, 7, 512] {
        let (mut attention, mut projections) = (0, 0);
        for context in 1..=tokens {
            attention += LLAMA3_8B.flops(context).attention;
            projections += LLAMA3_8B.flops(context).projections;
        }
        let prompt = LLAMA3_8B.prompt_flops(tokens);
        assert_eq!((prompt.attention, prompt.projections), (attention, projections), "{tokens} tokens");
    }
}

#[test]
fn unknown_feed_forward_is_eight_widths_squared() {
    let dims = Dims::new(12, 768, 12, 12, 64, 50_257);
    assert_eq!(dims.parameters().feed_forward, 12 * 8 * 768 * 768);
    assert_eq!(dims.with_gated(false).parameters().feed_forward, GPT2.parameters().feed_forward);
}

#[test]
fn absurd_dimensions_saturate_or_are_named() {
    let absurd = Dims::new(usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX, usize::MAX);
    assert_eq!(absurd.parameters().total(), u64::MAX);
    assert_eq!(absurd.flops(usize::MAX).total(), u64::MAX);
    assert_eq!(absurd.prompt_flops(usize::MAX).total(), u64::MAX);
    assert_eq!(absurd.kv_bytes_per_position(KvType::F32, KvType::Q8_0), u64::MAX);
    let message = |dims: Dims| dims.validate().unwrap_err().to_string();
    assert_eq!(message(Dims::new(1, 8, 1, 0, 8, 8)), "kv_heads is 0, it must be at least 1");
    assert_eq!(message(Dims::new(1, 8, 3, 2, 8, 8)), "3 heads do not divide among 2 kv_heads");
    assert!(message(LLAMA3_8B.with_experts(2, 3, 0)).contains("experts_used is 3"));
}
