//! A model of 100 KB with random weights, of which every number can be got at.

use super::{
    Random,
    gguf::{Field, Gguf, Tensor},
};

pub(crate) const LAYERS: u32 = 2;
pub(crate) const WIDTH: u64 = 64;
pub(crate) const HEADS: u32 = 4;
pub(crate) const KV_HEADS: u32 = 2;
pub(crate) const INNER: u64 = 96;
/// 256 bytes, and the special tokens.
pub(crate) const VOCAB: u64 = 259;

/// A decoder of the architecture `llama` with a byte-level vocabulary: one token a byte, `<s>`, `</s>` and `<|im_end|>`.
pub(crate) fn llama() -> Gguf {
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", Field::text("llama"))
        .set("general.name", Field::text("tiny"))
        .set("llama.context_length", Field::U32(512))
        .set("llama.embedding_length", Field::U32(WIDTH as u32))
        .set("llama.block_count", Field::U32(LAYERS))
        .set("llama.feed_forward_length", Field::U32(INNER as u32))
        .set("llama.attention.head_count", Field::U32(HEADS))
        .set("llama.attention.head_count_kv", Field::U32(KV_HEADS))
        .set("llama.attention.layer_norm_rms_epsilon", Field::F32(1e-5))
        .set("llama.rope.dimension_count", Field::U32(WIDTH as u32 / HEADS))
        .set("llama.rope.freq_base", Field::F32(10_000.0))
        .set("llama.vocab_size", Field::U32(VOCAB as u32));
    vocabulary(&mut gguf);
    let mut random = Random(7);
    let kv_width = WIDTH / u64::from(HEADS) * u64::from(KV_HEADS);
    let mut add = |name: String, shape: &[u64]| gguf.tensors.push(floats(name, shape, &mut random));
    add("token_embd.weight".into(), &[WIDTH, VOCAB]);
    add("output_norm.weight".into(), &[WIDTH]);
    for layer in 0..LAYERS {
        let mut block = |name: &str, shape: &[u64]| add(format!("blk.{layer}.{name}.weight"), shape);
        block("attn_norm", &[WIDTH]);
        block("attn_q", &[WIDTH, WIDTH]);
        block("attn_k", &[WIDTH, kv_width]);
        block("attn_v", &[WIDTH, kv_width]);
        block("attn_output", &[WIDTH, WIDTH]);
        block("ffn_norm", &[WIDTH]);
        block("ffn_gate", &[WIDTH, INNER]);
        block("ffn_down", &[INNER, WIDTH]);
        block("ffn_up", &[WIDTH, INNER]);
    }
    gguf
}

fn vocabulary(gguf: &mut Gguf) {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| spelt(byte).to_string().into_bytes()).collect();
    tokens.extend([b"<s>".to_vec(), b"</s>".to_vec(), b"<|im_end|>".to_vec()]);
    let types = (0..VOCAB).map(|id| if id < 256 { 1 } else { 3 }).collect();
    gguf.set("tokenizer.ggml.model", Field::text("gpt2"))
        .set("tokenizer.ggml.pre", Field::text("default"))
        .set("tokenizer.ggml.tokens", Field::Strs(tokens))
        .set("tokenizer.ggml.token_type", Field::I32s(types))
        // Of pieces the vocabulary does not have: it takes no part in encoding.
        .set("tokenizer.ggml.merges", Field::Strs(vec![b"\xc4\x80 \xc4\x80".to_vec()]))
        .set("tokenizer.ggml.bos_token_id", Field::U32(256))
        .set("tokenizer.ggml.eos_token_id", Field::U32(257));
}

/// How byte-level vocabularies spell a byte: printable ones as they are, the others from U+0100 on.
fn spelt(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return byte.into();
    }
    let before = (0..byte).filter(|&other| !printable(other)).count();
    char::from_u32(0x100 + before as u32).unwrap()
}

fn floats(name: String, shape: &[u64], random: &mut Random) -> Tensor {
    let count: u64 = shape.iter().product();
    // Norms near 1, the others small enough that nothing overflows.
    let norm = shape.len() == 1;
    let number = |random: &mut Random| if norm { 1.0 + 0.1 * random.float() } else { 0.3 * random.float() };
    let data = (0..count).flat_map(|_| number(random).to_le_bytes()).collect();
    Tensor { name, shape: shape.to_vec(), dtype: 0, data }
}

/// The first tensors with the metadata in one file, the others in a second one.
pub(crate) fn split(mut first: Gguf) -> [Gguf; 2] {
    let total = first.tensors.len() as i32;
    let mut second = Gguf::new();
    second.tensors = first.tensors.split_off(5);
    first
        .set("split.no", Field::U16(0))
        .set("split.count", Field::U16(2))
        .set("split.tensors.count", Field::I32(total));
    second
        .set("split.no", Field::U16(1))
        .set("split.count", Field::U16(2))
        .set("split.tensors.count", Field::I32(total));
    [first, second]
}

/// A decoder of the architecture `gpt2`, which has a learned embedding for each of its `positions`.
pub(crate) fn gpt2(positions: u64) -> Gguf {
    let mut gguf = Gguf::new();
    gguf.set("general.architecture", Field::text("gpt2"))
        .set("gpt2.context_length", Field::U32(positions as u32))
        .set("gpt2.embedding_length", Field::U32(WIDTH as u32))
        .set("gpt2.block_count", Field::U32(1))
        .set("gpt2.feed_forward_length", Field::U32(INNER as u32))
        .set("gpt2.attention.head_count", Field::U32(HEADS))
        .set("gpt2.attention.layer_norm_epsilon", Field::F32(1e-5));
    vocabulary(&mut gguf);
    let mut random = Random(11);
    let mut add = |name: &str, shape: &[u64]| gguf.tensors.push(floats(name.into(), shape, &mut random));
    add("token_embd.weight", &[WIDTH, VOCAB]);
    add("position_embd.weight", &[WIDTH, positions]);
    let mut both = |name: &str, shape: &[u64]| {
        add(&format!("{name}.weight"), shape);
        add(&format!("{name}.bias"), &shape[shape.len() - 1..]);
    };
    both("output_norm", &[WIDTH]);
    both("blk.0.attn_norm", &[WIDTH]);
    both("blk.0.attn_qkv", &[WIDTH, 3 * WIDTH]);
    both("blk.0.attn_output", &[WIDTH, WIDTH]);
    both("blk.0.ffn_norm", &[WIDTH]);
    both("blk.0.ffn_up", &[WIDTH, INNER]);
    both("blk.0.ffn_down", &[INNER, WIDTH]);
    gguf
}
