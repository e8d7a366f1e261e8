//! GGUF files made for a test: a vocabulary alone, or a whole model of a few thousand numbers.

use std::path::{Path, PathBuf};

use build_support::gguf::{Field, Gguf, Tensor};

const EMBEDDING: u64 = 32;
const FEED_FORWARD: u64 = 64;

/// What a token is, as the file says it.
#[derive(Clone, Copy)]
enum Kind {
    Normal = 1,
    Unknown = 2,
    Control = 3,
    Byte = 6,
}

/// A model of one layer whose vocabulary has all bytes and the letters.
pub fn tiny(folder: &Path) -> PathBuf {
    let mut tokens = special();
    tokens.extend((0..=u8::MAX).map(|byte| (format!("<0x{byte:02X}>"), Kind::Byte)));
    tokens.extend(('a'..='z').map(|letter| (letter.to_string(), Kind::Normal)));
    tokens.push(("\u{2581}".to_owned(), Kind::Normal));
    let vocab = tokens.len() as u64;
    let tensors = [
        ("token_embd.weight", vec![EMBEDDING, vocab]),
        ("output_norm.weight", vec![EMBEDDING]),
        ("blk.0.attn_norm.weight", vec![EMBEDDING]),
        ("blk.0.attn_q.weight", vec![EMBEDDING, EMBEDDING]),
        ("blk.0.attn_k.weight", vec![EMBEDDING, EMBEDDING]),
        ("blk.0.attn_v.weight", vec![EMBEDDING, EMBEDDING]),
        ("blk.0.attn_output.weight", vec![EMBEDDING, EMBEDDING]),
        ("blk.0.ffn_norm.weight", vec![EMBEDDING]),
        ("blk.0.ffn_gate.weight", vec![EMBEDDING, FEED_FORWARD]),
        ("blk.0.ffn_up.weight", vec![EMBEDDING, FEED_FORWARD]),
        ("blk.0.ffn_down.weight", vec![FEED_FORWARD, EMBEDDING]),
    ];
    write(&folder.join("tiny.gguf"), &tokens, &tensors)
}

/// A vocabulary that lacks the bytes its tokenizer falls back to: llama.cpp throws when it meets another letter.
pub fn without_bytes(folder: &Path) -> PathBuf {
    let mut tokens = special();
    tokens.extend(["a", "b", "\u{2581}"].map(|text| (text.to_owned(), Kind::Normal)));
    write(&folder.join("without-bytes.gguf"), &tokens, &[])
}

fn special() -> Vec<(String, Kind)> {
    let tokens = [("<unk>", Kind::Unknown), ("<s>", Kind::Control), ("</s>", Kind::Control)];
    tokens.map(|(text, kind)| (text.to_owned(), kind)).to_vec()
}

fn write(path: &Path, tokens: &[(String, Kind)], tensors: &[(&str, Vec<u64>)]) -> PathBuf {
    let mut file = Gguf::new();
    for (key, value) in [
        ("llama.context_length", 128),
        ("llama.embedding_length", EMBEDDING as u32),
        ("llama.block_count", 1),
        ("llama.feed_forward_length", FEED_FORWARD as u32),
        ("llama.attention.head_count", 2),
        ("llama.rope.dimension_count", 16),
        ("tokenizer.ggml.unknown_token_id", 0),
        ("tokenizer.ggml.bos_token_id", 1),
        ("tokenizer.ggml.eos_token_id", 2),
    ] {
        file.set(key, Field::U32(value));
    }
    file.set("general.architecture", Field::text("llama"))
        .set("llama.attention.layer_norm_rms_epsilon", Field::F32(1e-5))
        .set("tokenizer.ggml.model", Field::text("llama"))
        .set("tokenizer.ggml.tokens", Field::Strs(tokens.iter().map(|(text, _)| text.clone().into()).collect()))
        .set("tokenizer.ggml.scores", Field::F32s(vec![0.0; tokens.len()]))
        .set("tokenizer.ggml.token_type", Field::I32s(tokens.iter().map(|(_, kind)| *kind as i32).collect()));
    for (name, shape) in tensors {
        let count: u64 = shape.iter().product();
        file.tensors.push(Tensor::f32(*name, shape, (0..count).map(|n| number(name, n))));
    }
    std::fs::write(path, file.bytes()).unwrap();
    path.to_owned()
}

/// Weights that are arbitrary and always the same: about 1 in the norms, small elsewhere.
fn number(name: &str, n: u64) -> f32 {
    let mut state = name.bytes().fold(n + 1, |state, byte| state.wrapping_mul(31).wrapping_add(byte.into()));
    state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    let unit = ((state ^ state >> 31) >> 40) as f32 / (1 << 24) as f32 - 0.5;
    if name.contains("norm") { 1.0 + unit * 0.1 } else { unit * 0.5 }
}
