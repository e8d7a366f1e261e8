//! The two vocabularies.

use crate::gguf::{Field, Gguf};

/// Token types of the file.
const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;

/// Tokens of [`bytes`]: 256 bytes and the special ones.
pub(super) const BYTES: u64 = 259;

/// Byte-level, without merges: one token a byte, then `<s>`, `</s>` and `<|im_end|>`.
pub(super) fn bytes(gguf: &mut Gguf) {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| spelt(byte).to_string().into_bytes()).collect();
    tokens.extend(["<s>", "</s>", "<|im_end|>"].map(|text| text.as_bytes().to_vec()));
    let types = (0..BYTES).map(|id| if id < 256 { NORMAL } else { CONTROL }).collect();
    gguf.set("tokenizer.ggml.model", Field::text("gpt2"))
        .set("tokenizer.ggml.pre", Field::text("default"))
        .set("tokenizer.ggml.tokens", Field::Strs(tokens))
        .set("tokenizer.ggml.token_type", Field::I32s(types))
        // llama.cpp wants some. This one is of pieces the vocabulary has not joined: it takes no part in encoding.
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
    char::from_u32(0x100 + before as u32).expect("256 characters from U+0100 on")
}

/// WordPiece over letters and digits, with a few whole words. Returns how many tokens there are.
pub(super) fn pieces(gguf: &mut Gguf) -> u64 {
    const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    const WORDS: &str =
        "the a of and to in is cat dog sat mat good bad not very river bank money ing ed er est ly un re";
    let mut tokens: Vec<String> = SPECIAL.map(str::to_owned).to_vec();
    let letters = || ('a'..='z').chain('0'..='9').map(String::from);
    // What begins a word is marked by the sign that stands for a space elsewhere.
    let begins = |piece: String| format!("\u{2581}{piece}");
    tokens.extend(letters().map(begins));
    tokens.extend(letters());
    tokens.extend([".", ",", "!", "?", "'"].map(|sign| begins(sign.to_owned())));
    for word in WORDS.split(' ').filter(|word| word.len() > 1) {
        tokens.extend([begins(word.to_owned()), word.to_owned()]);
    }
    let kind = |id: usize| match id {
        1 => UNKNOWN,
        id if id < SPECIAL.len() => CONTROL,
        _ => NORMAL,
    };
    let count = tokens.len();
    gguf.set("tokenizer.ggml.model", Field::text("bert"))
        .set("tokenizer.ggml.pre", Field::text("default"))
        .set("tokenizer.ggml.tokens", Field::Strs(tokens.into_iter().map(String::into_bytes).collect()))
        .set("tokenizer.ggml.token_type", Field::I32s((0..count).map(kind).collect()))
        .set("tokenizer.ggml.token_type_count", Field::U32(2))
        .set("tokenizer.ggml.padding_token_id", Field::U32(0))
        .set("tokenizer.ggml.unknown_token_id", Field::U32(1))
        .set("tokenizer.ggml.bos_token_id", Field::U32(2))
        .set("tokenizer.ggml.seperator_token_id", Field::U32(3))
        .set("tokenizer.ggml.mask_token_id", Field::U32(4));
    count as u64
}
