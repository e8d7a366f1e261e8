//! GGUF files made for a test: a vocabulary alone, or a whole model of a few thousand numbers.

use std::path::{Path, PathBuf};

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
    let mut pairs = Pairs::default();
    pairs.text("general.architecture", "llama");
    pairs.text("tokenizer.ggml.model", "llama");
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
        pairs.key(key, 4);
        pairs.bytes.extend(value.to_le_bytes());
    }
    pairs.key("llama.attention.layer_norm_rms_epsilon", 6);
    pairs.bytes.extend(1e-5_f32.to_le_bytes());
    pairs.array("tokenizer.ggml.tokens", 8, tokens.len());
    for (text, _) in tokens {
        pairs.string(text);
    }
    pairs.array("tokenizer.ggml.scores", 6, tokens.len());
    pairs.bytes.extend(tokens.iter().flat_map(|_| 0_f32.to_le_bytes()));
    pairs.array("tokenizer.ggml.token_type", 5, tokens.len());
    pairs.bytes.extend(tokens.iter().flat_map(|(_, kind)| (*kind as i32).to_le_bytes()));

    let mut file = b"GGUF".to_vec();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend(pairs.count.to_le_bytes());
    file.extend(pairs.bytes);
    let mut data = Vec::new();
    for (name, shape) in tensors {
        file.extend((name.len() as u64).to_le_bytes());
        file.extend(name.as_bytes());
        file.extend((shape.len() as u32).to_le_bytes());
        file.extend(shape.iter().flat_map(|n| n.to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        let numbers: u64 = shape.iter().product();
        data.extend((0..numbers).flat_map(|n| number(name, n).to_le_bytes()));
        data.resize(data.len().next_multiple_of(32), 0);
    }
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend(data);
    std::fs::write(path, file).unwrap();
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

/// Metadata.
#[derive(Default)]
struct Pairs {
    count: u64,
    bytes: Vec<u8>,
}

impl Pairs {
    fn key(&mut self, key: &str, kind: u32) {
        self.count += 1;
        self.string(key);
        self.bytes.extend(kind.to_le_bytes());
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key, 8);
        self.string(value);
    }

    fn array(&mut self, key: &str, kind: u32, n: usize) {
        self.key(key, 9);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend((n as u64).to_le_bytes());
    }

    fn string(&mut self, text: &str) {
        self.bytes.extend((text.len() as u64).to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }
}
