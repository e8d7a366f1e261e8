//! A `tokenizer.json` by anybody: a tokenizer or an error by name, and texts that it encodes or refuses; without a panic of ours, and without a
//! control token that a text spells.
#![no_main]

use infer_core::{ErrorKind, Special, Tokenizer as _, huggingface::Tokenizer};
use infer_fuzz::seeds;
use libfuzzer_sys::fuzz_target;
use std::panic;

const TEXTS: [&str; 6] = [
    "",
    "ab  a\n",
    "<s>[CLS]<|im_end|></s>",
    "Grüße, 世界! 🦀",
    "\0\u{FFFD}▁ ▁",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 12345",
];

fuzz_target!(init: { seeds::write_if_asked(first); crates_may_panic() }, |json: &[u8]| {
    let tokenizer = match Tokenizer::from_json(json) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return assert_eq!(error.kind(), ErrorKind::InvalidModel),
    };
    let vocab = tokenizer.vocab();
    for text in TEXTS {
        for special in [Special::NONE, Special::ADD, Special::PARSE] {
            let mut tokens = Vec::new();
            if tokenizer.encode(text, special, &mut tokens).is_err() {
                assert!(tokens.is_empty());
            }
            assert!(tokens.iter().all(|token| token.index() < vocab.len()));
        }
    }
});

/// What panics in the crate `tokenizers` and those below it is caught and becomes an error; the fuzzer's hook would end the process before that.
/// A panic in this library still does.
fn crates_may_panic() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.location().is_some_and(|place| place.file().contains("infer-")) {
            abort(info);
        }
    }));
}

/// One of each family, small.
fn first() -> Vec<Vec<u8>> {
    let files = [
        r#"{"version": "1.0", "added_tokens": [{"id": 3, "content": "<|im_end|>", "special": true, "normalized": false}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 4, "Ċ": 5}, "merges": ["a b"], "ignore_merges": true}}"#,
        r#"{"added_tokens": [{"id": 1, "content": "<s>", "special": true}],
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}, {"type": "NFKC"}]},
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
                "vocab": {"<unk>": 0, "<s>": 1, "▁": 2, "a": 3, "▁a": 4, "<0x0A>": 5}, "merges": [["▁", "a"]]}}"#,
        r###"{"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##a": 4}}}"###,
        r#"{"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+(?!\\S)"}, "behavior": "Isolated", "invert": false},
                {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}]},
            "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [["<unk>", 0.0], ["▁", -2.0], ["a", -3.0], ["</s>", 0.0]]}}"#,
        r#"{"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "ab": 1}}}"#,
    ];
    files.iter().map(|file| file.as_bytes().to_vec()).collect()
}
