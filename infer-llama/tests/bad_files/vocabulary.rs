//! Fields of a header that describe the vocabulary.

use super::*;

#[test]
fn fields_that_describe_the_vocabulary() {
    all_refused(&[
        ("eos", |g| set(g, "tokenizer.ggml.eos_token_id", Field::U32(1_000_000_000)), &["tokenizer.ggml.eos_token_id"]),
        ("bos", |g| set(g, "tokenizer.ggml.bos_token_id", Field::U32(259)), &["tokenizer.ggml.bos_token_id is 259"]),
        ("fim", |g| set(g, "tokenizer.ggml.fim_pre_token_id", Field::U32(u32::MAX)), &["fim_pre_token_id"]),
        ("eos-type", |g| set(g, "tokenizer.ggml.eos_token_id", Field::I32(-1)), &["tokenizer.ggml.eos_token_id"]),
        ("size-10", |g| set(g, "llama.vocab_size", Field::U32(10)), &["llama.vocab_size is 10"]),
        ("size-2-31", |g| set(g, "llama.vocab_size", Field::U32(1 << 31)), &["llama.vocab_size"]),
        ("dummies", |g| dummies(g), &["llama.vocab_size"]),
        ("no-model", |g| _ = g.remove("tokenizer.ggml.model"), &["tokenizer.ggml.model"]),
        ("no-tokens", |g| _ = g.remove("tokenizer.ggml.tokens"), &["tokenizer.ggml.tokens"]),
        ("empty-tokens", |g| g.strings(TOKENS).clear(), &["tokenizer.ggml.tokens is empty"]),
        ("tokens-type", |g| set(g, TOKENS, Field::I32s(vec![1, 2, 3])), &["tokenizer.ggml.tokens"]),
        ("twins", |g| g.strings(TOKENS)[5] = b"A".to_vec(), &["tokenizer.ggml.tokens: token 65"]),
        ("twins-before-nul", |g| g.strings(TOKENS)[200] = b"A\0B".to_vec(), &["tokenizer.ggml.tokens: token 200"]),
        ("named-empty", |g| named_empty(g), &["tokenizer.ggml.tokens"]),
        ("merge", |g| set(g, MERGES, Field::Strs(vec![b"ab".to_vec()])), &["tokenizer.ggml.merges: merge 0"]),
        ("merge-empty", |g| set(g, MERGES, Field::Strs(vec![b"".to_vec()])), &["tokenizer.ggml.merges"]),
        ("add-bos", |g| no_bos(g), &["tokenizer.ggml.add_bos_token"]),
        ("byte", |g| byte_in_words(g), &["tokenizer.ggml.token_type: token 70"]),
        ("spaces", |g| set(g, "tokenizer.ggml.pre", Field::text("whitespace")), &["tokenizer.ggml.pre is whitespace"]),
        ("rwkv", |g| rwkv(g, "B", r"\x41B"), &["tokenizer.ggml.tokens: token 256 begins with the byte 0x41"]),
        ("misspelt-byte", |g| set(g, TYPES, Field::I32s([6; 259].to_vec())), &["tokenizer.ggml.token_type"]),
    ]);
}

const TOKENS: &str = "tokenizer.ggml.tokens";

const TYPES: &str = "tokenizer.ggml.token_type";

const MERGES: &str = "tokenizer.ggml.merges";

/// No vocabulary, and more made-up tokens than memory.
fn dummies(gguf: &mut Gguf) {
    gguf.set("tokenizer.ggml.model", Field::text("no_vocab")).set("llama.vocab_size", Field::U32(1 << 31));
}

/// An empty token, and the name llama.cpp gives to it.
fn named_empty(gguf: &mut Gguf) {
    gguf.strings(TOKENS)[7].clear();
    gguf.strings(TOKENS)[9] = b"[EMPTY_7]".to_vec();
}

/// The default of this family is token 11, which there is; another family has none.
fn no_bos(gguf: &mut Gguf) {
    gguf.remove("tokenizer.ggml.bos_token_id")
        .set("tokenizer.ggml.pre", Field::text("chatglm-bpe"))
        .set("tokenizer.ggml.add_bos_token", Field::Bool(true));
}

fn byte_in_words(gguf: &mut Gguf) {
    let types = (0..259).map(|id| if id == 70 { 6 } else { 1 }).collect();
    gguf.strings(TOKENS)[70] = b"<0x0A>".to_vec();
    gguf.set("tokenizer.ggml.model", Field::text("bert")).set(TYPES, Field::I32s(types));
}

/// A vocabulary with a token for each byte, spelt with escapes, and a longer one; in place of the token for `A`, another.
fn rwkv(gguf: &mut Gguf, instead: &str, longer: &str) {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| format!("\\x{byte:02x}").into_bytes()).collect();
    tokens[0] = b"<s>".to_vec();
    tokens[65] = instead.as_bytes().to_vec();
    tokens.extend([longer.as_bytes().to_vec(), br"\n\n".to_vec(), br"\\word".to_vec()]);
    gguf.set("tokenizer.ggml.model", Field::text("rwkv")).set(TOKENS, Field::Strs(tokens));
}

/// What the case above is like without its fault.
#[test]
fn a_vocabulary_that_is_spelt_with_escapes() {
    let folder = Folder::new();
    let mut gguf = tiny::llama();
    rwkv(&mut gguf, "A", r"\x41B");
    assert_eq!(open(&folder.file("rwkv.gguf", &gguf.bytes())).unwrap(), "a model");
}
