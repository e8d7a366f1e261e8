//! Tensors that are not there, or not as the header has them.

use super::*;

#[test]
fn tensors() {
    all_refused(&[
        ("none", |g| g.tensors.clear(), &["no tensors"]),
        ("missing", |g| g.tensors.retain(|t| t.name != "blk.0.attn_q.weight"), &["attn_q.weight"]),
        ("shape", |g| g.tensor("output_norm.weight").shape = vec![32, 2], &["output_norm.weight"]),
        ("empty", |g| g.tensor("output_norm.weight").shape = vec![0], &["output_norm.weight"]),
        ("overflow", |g| g.tensor("output_norm.weight").shape = vec![1 << 40, 1 << 40], &["output_norm.weight"]),
        (
            "rank",
            |g| g.tensor("output_norm.weight").shape = vec![1, 2, 2, 4, 4],
            &["output_norm.weight", "5 dimensions"],
        ),
        ("type-99", |g| g.tensor("output_norm.weight").dtype = 99, &["output_norm.weight", "type 99"]),
        ("type-removed", |g| g.tensor("token_embd.weight").dtype = 4, &["token_embd.weight", "type 4"]),
        ("norm-f16", |g| halved(g, "blk.0.attn_norm.weight", 1), &["blk.0.attn_norm.weight", "F16"]),
        ("norm-q8", |g| quantised(g, "output_norm.weight", 8, 34), &["output_norm.weight", "Q8_0"]),
        ("scale-f16", |g| add(g, "blk.0.attn_q.scale", &[], 1, 2), &["blk.0.attn_q.scale", "F16"]),
        ("input-scale-f16", |g| add(g, "blk.0.ffn_up.input_scale", &[1], 1, 2), &["blk.0.ffn_up.input_scale", "F16"]),
        ("sinks-f16", |g| add(g, "blk.0.attn_sinks.weight", &[4], 1, 8), &["blk.0.attn_sinks.weight", "F16"]),
        ("weights-i32", |g| g.tensor("blk.0.attn_q.weight").dtype = 26, &["blk.0.attn_q.weight", "I32"]),
        ("weights-q8_1", |g| quantised(g, "blk.0.attn_q.weight", 9, 36), &["blk.0.attn_q.weight", "Q8_1"]),
        ("embeddings-i16", |g| halved(g, "token_embd.weight", 25), &["token_embd.weight", "I16"]),
        ("twice", |g| g.tensors[4].name = "output_norm.weight".into(), &["output_norm.weight is there twice"]),
        ("long-name", |g| g.tensors[4].name = "x".repeat(64), &["the name of tensor 4"]),
        ("alignment-8", |g| unaligned(g), &["multiple of 32"]),
        ("alignment-0", |g| set(g, "general.alignment", Field::U32(0)), &["general.alignment is 0"]),
        ("alignment-type", |g| set(g, "general.alignment", Field::U64(32)), &["general.alignment"]),
        (
            "key-twice",
            |g| g.fields.push(("llama.vocab_size".into(), Field::U32(259))),
            &["llama.vocab_size is there twice"],
        ),
        ("key-nul", |g| g.fields.push((b"llama.x\0".to_vec(), Field::U32(1))), &["metadata field"]),
        (
            "nested",
            |g| set(g, "llama.nested", Field::Raw(9, [[9, 0, 0, 0], [0; 4], [0; 4]].concat())),
            &["llama.nested"],
        ),
    ]);
}

/// One tensor more, of `bytes` bytes.
fn add(gguf: &mut Gguf, name: &str, shape: &[u64], dtype: u32, bytes: usize) {
    gguf.tensors.push(Tensor { name: name.into(), shape: shape.to_vec(), dtype, data: vec![0; bytes] });
}

/// 16-bit numbers of type `dtype` where 32-bit ones were.
fn halved(gguf: &mut Gguf, name: &str, dtype: u32) {
    let tensor = gguf.tensor(name);
    tensor.data.truncate(tensor.data.len() / 2);
    tensor.dtype = dtype;
}

/// Blocks of 32 numbers in `bytes` bytes where 32-bit numbers were.
fn quantised(gguf: &mut Gguf, name: &str, dtype: u32, bytes: usize) {
    let tensor = gguf.tensor(name);
    tensor.data.truncate(tensor.data.len() / 4 / 32 * bytes);
    tensor.dtype = dtype;
}

/// A legal alignment at which ggml asserts when the file is mapped; the name makes the header end off a multiple of 32.
fn unaligned(gguf: &mut Gguf) {
    gguf.alignment = 8;
    gguf.set("general.alignment", Field::U32(8));
    while gguf.header().len().is_multiple_of(32) {
        gguf.set(&format!("general.pad{}", gguf.fields.len()), Field::U8(0));
    }
}
