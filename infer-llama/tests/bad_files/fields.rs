//! Fields of a header that describe the network.

use super::*;

#[test]
fn fields_that_describe_the_network() {
    all_refused(&[
        ("no-architecture", |g| _ = g.remove("general.architecture"), &["general.architecture"]),
        ("nul-in-architecture", |g| set(g, "general.architecture", Field::text("llama\0x")), &["general.architecture"]),
        ("clip", |g| set(g, "general.architecture", Field::text("clip")), &["clip"]),
        ("unknown-architecture", |g| set(g, "general.architecture", Field::text("nobody")), &["nobody"]),
        ("blocks-0", |g| set(g, "llama.block_count", Field::U32(0)), &["llama.block_count is 0"]),
        ("blocks-513", |g| set(g, "llama.block_count", Field::U32(513)), &["llama.block_count is 513"]),
        ("blocks-max", |g| set(g, "llama.block_count", Field::U32(u32::MAX)), &["llama.block_count"]),
        ("blocks-type", |g| set(g, "llama.block_count", Field::I32(2)), &["llama.block_count is of type i32"]),
        ("nextn", |g| set(g, "llama.nextn_predict_layers", Field::U32(3)), &["llama.nextn_predict_layers"]),
        ("context-0", |g| set(g, "llama.context_length", Field::U32(0)), &["llama.context_length is 0"]),
        ("context-max", |g| set(g, "llama.context_length", Field::U32(u32::MAX)), &["llama.context_length"]),
        ("no-context", |g| _ = g.remove("llama.context_length"), &["llama.context_length is missing"]),
        ("width-0", |g| set(g, "llama.embedding_length", Field::U32(0)), &["llama.embedding_length"]),
        ("epsilon-negative", |g| set(g, EPSILON, Field::F32(-1e-5)), &[EPSILON]),
        ("epsilon-nan", |g| set(g, EPSILON, Field::F32(f32::NAN)), &[EPSILON]),
        ("epsilon-infinite", |g| set(g, EPSILON, Field::F32(f32::INFINITY)), &[EPSILON]),
        ("rope-base-nan", |g| set(g, "llama.rope.freq_base", Field::F32(f32::NAN)), &["llama.rope.freq_base"]),
        (
            "rope-base-infinite",
            |g| set(g, "llama.rope.freq_base", Field::F32(f32::INFINITY)),
            &["llama.rope.freq_base"],
        ),
        ("rope-base-0", |g| set(g, "llama.rope.freq_base", Field::F32(0.0)), &["llama.rope.freq_base"]),
        ("rope-base-negative", |g| set(g, "llama.rope.freq_base", Field::F32(-1.0)), &["llama.rope.freq_base"]),
        ("rope-factor", |g| set(g, "llama.rope.scaling.factor", Field::F32(-2.0)), &["llama.rope.scaling.factor"]),
        ("rope-type", |g| set(g, "llama.rope.scaling.type", Field::text("su")), &["llama.rope.scaling.type"]),
        ("rope-odd", |g| reshape_heads(g, 2, 15, 15), &["llama.rope.dimension_count"]),
        ("rope-long", |g| set(g, "llama.rope.dimension_count", Field::U32(32)), &["llama.rope.dimension_count is 32"]),
        ("heads-0", |g| set(g, "llama.attention.head_count", Field::U32(0)), &["llama.attention.head_count"]),
        ("heads-many", |g| set(g, "llama.attention.head_count", Field::U32(1 << 31)), &["heads"]),
        ("heads-uneven", |g| reshape_heads(g, 3, 16, 16), &["llama.attention.head_count_kv"]),
        (
            "heads-array",
            |g| set(g, "llama.attention.head_count", Field::U32s(vec![4])),
            &["llama.attention.head_count"],
        ),
        ("heads-negative", |g| set(g, "llama.attention.head_count", Field::I32s(vec![-4, 4])), &["head_count"]),
        ("key-length-0", |g| set(g, "llama.attention.key_length", Field::U32(0)), &["llama.attention.key_length"]),
        ("value-length", |g| reshape_heads(g, 2, 16, 32), &["llama.attention.value_length"]),
        ("experts-unused", |g| set(g, "llama.expert_count", Field::U32(4)), &["llama.expert_used_count"]),
        ("experts-none", |g| set(g, "llama.expert_used_count", Field::U32(4)), &["llama.expert_used_count"]),
        ("experts-many", |g| set(g, "llama.expert_count", Field::U32(5000)), &["llama.expert_count"]),
        ("groups", |g| set(g, "llama.expert_group_count", Field::U32(2)), &["llama.expert_group_count"]),
        ("sections-missing", |g| rename(g, "paddleocr"), &["paddleocr.rope.dimension_sections is missing"]),
        ("sections-last", |g| sections(g, [0, 0, 0, 8]), &["paddleocr.rope.dimension_sections is [0, 0, 0, 8]"]),
        ("sections-long", |g| sections(g, [8, 8, 8, 0]), &["paddleocr.rope.dimension_sections is [8, 8, 8, 0]"]),
        ("sections-negative", |g| sections(g, [8, -8, 4, 4]), &["paddleocr.rope.dimension_sections"]),
        ("sections-overflow", |g| sections(g, [i32::MAX, i32::MAX, 2, 8]), &["paddleocr.rope.dimension_sections"]),
        ("step", |g| rename(g, "ernie4_5-moe"), &["ernie4_5-moe.interleave_moe_layer_step"]),
        ("pooling", |g| set(g, "llama.pooling_type", Field::U32(9)), &["llama.pooling_type is 9"]),
        ("nan", |g| set(g, "llama.logit_scale", Field::F32(f32::NAN)), &["llama.logit_scale"]),
    ]);
}

const EPSILON: &str = "llama.attention.layer_norm_rms_epsilon";

/// Another architecture with the same numbers and tensors.
fn rename(gguf: &mut Gguf, architecture: &str) {
    for (key, _) in &mut gguf.fields {
        if let Some(name) = key.strip_prefix(b"llama.") {
            *key = [architecture.as_bytes(), b".", name].concat();
        }
    }
    gguf.set("general.architecture", Field::text(architecture));
}

/// Positions with several coordinates: heads of 16 numbers, so many of which turn with each.
fn sections(gguf: &mut Gguf, sizes: [i32; 4]) {
    rename(gguf, "paddleocr");
    gguf.set("paddleocr.rope.dimension_sections", Field::I32s(sizes.to_vec()));
}

#[test]
fn positions_with_several_coordinates() {
    let folder = Folder::new();
    let mut gguf = tiny::llama();
    sections(&mut gguf, [4, 2, 2, 0]);
    assert_eq!(open(&folder.file("sections.gguf", &gguf.bytes())).unwrap(), "a model");
}

/// Heads of other lengths or numbers, with tensors that fit them: llama.cpp checks no more than the fit.
fn reshape_heads(gguf: &mut Gguf, kv_heads: u32, key: u32, value: u32) {
    gguf.set("llama.attention.head_count_kv", Field::U32(kv_heads))
        .set("llama.attention.key_length", Field::U32(key))
        .set("llama.attention.value_length", Field::U32(value))
        .set("llama.rope.dimension_count", Field::U32(key));
    let (heads, kv_heads, key, value) = (u64::from(tiny::HEADS), u64::from(kv_heads), u64::from(key), u64::from(value));
    for layer in 0..tiny::LAYERS {
        let shapes = [
            ("attn_q", [tiny::WIDTH, heads * key]),
            ("attn_k", [tiny::WIDTH, kv_heads * key]),
            ("attn_v", [tiny::WIDTH, kv_heads * value]),
            ("attn_output", [heads * key, tiny::WIDTH]),
        ];
        for (name, shape) in shapes {
            let tensor = gguf.tensor(&format!("blk.{layer}.{name}.weight"));
            tensor.data = vec![0; (shape[0] * shape[1] * 4) as usize];
            tensor.shape = shape.to_vec();
        }
    }
}
