//! A `tokenizer.json` of the vocabulary in a GGUF file, so that both runtimes can be asked about the same one.

use infer_llama::gguf::{Header, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::{HashMap, HashSet};

/// What llama.cpp calls the kinds of tokens.
const UNKNOWN: u64 = 2;
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

/// The file, or `None` for a family that this does not describe.
pub(crate) fn tokenizer_json(header: &Header) -> Option<Json> {
    let text = |key: &str| header.value(key).and_then(Value::as_str);
    match text("tokenizer.ggml.model")? {
        "gpt2" => byte_level(header, text("tokenizer.ggml.pre")?),
        "llama" => Some(sentence_piece(header)),
        "bert" => Some(word_piece(header)),
        _ => None,
    }
}

fn tokens(header: &Header) -> Vec<String> {
    let texts = header.value("tokenizer.ggml.tokens").and_then(Value::as_strings).unwrap();
    texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

fn kinds(header: &Header) -> Vec<u64> {
    let Some(Value::Array(kinds)) = header.value("tokenizer.ggml.token_type") else { panic!("the kinds of tokens") };
    (0..kinds.len()).map(|id| kinds.item(id).and_then(|kind| kind.as_u64()).unwrap()).collect()
}

/// Tokens that stand beside those of the model, and the ids of the others by their texts.
fn split(header: &Header) -> (Vec<Json>, Map<String, Json>) {
    let (mut added, mut vocab) = (Vec::new(), Map::new());
    for ((id, text), kind) in tokens(header).into_iter().enumerate().zip(kinds(header)) {
        if kind == CONTROL || kind == USER_DEFINED {
            added.push(json!({"id": id, "content": text, "normalized": false, "special": kind == CONTROL}));
        }
        if kind != CONTROL && kind != USER_DEFINED || kind == UNKNOWN {
            vocab.insert(text, json!(id));
        }
    }
    (added, vocab)
}

fn byte_level(header: &Header, family: &str) -> Option<Json> {
    let regex = |pattern: &str| json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false});
    let bytes = |use_regex| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
    let digits = json!({"type": "Digits", "individual_digits": true});
    let cuts = match family {
        "gpt-2" | "mpt" => json!([bytes(true)]),
        "smollm" | "starcoder" | "refact" | "command-r" => json!([digits, bytes(true)]),
        "llama-bpe" => json!([
            regex(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            bytes(false)
        ]),
        "qwen2" => json!([
            regex(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            bytes(false)
        ]),
        _ => return None,
    };
    let (added, vocab) = split(header);
    let merges = header.value("tokenizer.ggml.merges").and_then(Value::as_strings).unwrap();
    let merges: Vec<_> = merges.iter().map(|merge| String::from_utf8_lossy(merge).into_owned()).collect();
    Some(json!({
        "added_tokens": added,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
        "decoder": bytes(true),
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": family == "llama-bpe"},
    }))
}

/// Pieces are joined by the score of what becomes of them, so two that make a better one come first.
fn sentence_piece(header: &Header) -> Json {
    let Some(Value::Array(scores)) = header.value("tokenizer.ggml.scores") else { panic!("the scores of tokens") };
    let score = |id: u64| match scores.item(id as usize) {
        Some(Value::F32(score)) => score,
        other => panic!("a score {other:?}"),
    };
    let (added, vocab) = split(header);
    let ids: HashMap<&str, u64> = vocab.iter().map(|(text, id)| (text.as_str(), id.as_u64().unwrap())).collect();
    let mut merges = Vec::new();
    for (&text, &id) in &ids {
        let cuts = text.char_indices().skip(1).map(|(at, _)| text.split_at(at));
        let known = cuts.filter(|(left, right)| ids.contains_key(left) && ids.contains_key(right));
        merges.extend(known.map(|(left, right)| (score(id), ids[left], ids[right], left, right)));
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let merges: Vec<_> = merges.into_iter().map(|(.., left, right)| [left, right]).collect();
    json!({
        "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ]},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true},
    })
}

fn word_piece(header: &Header) -> Json {
    let control: HashSet<&str> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"].into();
    let (mut added, mut vocab) = (Vec::new(), Map::new());
    for (id, text) in tokens(header).into_iter().enumerate() {
        if control.contains(text.as_str()) {
            added.push(json!({"id": id, "content": text, "normalized": false, "special": true}));
        }
        let text = match text.strip_prefix('▁') {
            Some(word) => word.to_owned(),
            None if text.starts_with('[') && text.ends_with(']') => text,
            None => format!("##{text}"),
        };
        vocab.insert(text, json!(id));
    }
    json!({
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]},
        "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
    })
}
