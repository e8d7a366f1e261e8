//! A `tokenizer.json` that is small and asks for much, or says what cannot be: each in a child process of little memory. Whatever it says, it
//! is refused or it encodes, and says so in time.

use infer_core::{ErrorKind, Special, Tokenizer as _, huggingface::Tokenizer};
use kit::child;
use serde_json::{Value, json};

/// Address space of a child.
const ROOM: u64 = 4 << 30;

/// A tokenizer of the letters, one by one.
fn letters() -> Value {
    let vocab = (b'a'..=b'z').enumerate().map(|(id, letter)| (char::from(letter).to_string(), json!(id)));
    json!({
        "added_tokens": [{"id": 26, "content": "<end>", "special": true}],
        "normalizer": null,
        "pre_tokenizer": null,
        "model": {"type": "BPE", "unk_token": null, "vocab": vocab.collect::<serde_json::Map<_, _>>(), "merges": []}
    })
}

/// What comes of a text: how many tokens, or an error that is one.
fn encoded(file: &Value, text: &str) -> String {
    let tokenizer = match Tokenizer::from_json(file.to_string().as_bytes()) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
            return format!("refused: {error}").replace('\n', " ");
        }
    };
    let mut tokens = Vec::new();
    let outcome = tokenizer.encode(text, Special::NONE, &mut tokens);
    let answer = match outcome {
        Ok(()) => format!("{} tokens", tokens.len()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Runtime, "{error}");
            assert!(tokens.is_empty(), "half a text is none");
            format!("not encoded: {error}").replace('\n', " ")
        }
    };
    // And it is as it was.
    tokens.clear();
    if tokenizer.encode("a", Special::NONE, &mut tokens).is_ok() {
        assert!(tokens.len() <= 1, "{tokens:?}");
    }
    answer
}

#[test]
fn patterns_that_try_every_way_end() {
    // Of the last two each step is one of its own: no engine of finite states takes them.
    const CASES: &[&str] = &[
        "(a+)+$",
        "(a|a)*$",
        "(a|aa)+$",
        "(.*)*b$",
        "((a+)+)+(?!a)$",
        "(?=(a+)+b)a",
        "(a+)+\\1b",
        "(?<!b)(a+)+(?<=b)",
    ];
    // Ways that double with each letter would take for ever; those that grow with its square do not.
    const LONG: usize = 3_000;
    let answers = child::cases_within(ROOM, "tokenizers::patterns_that_try_every_way_end", CASES, |case| {
        let text = "a".repeat(LONG) + "c";
        let mut all = Vec::new();
        for part in ["pre_tokenizer", "normalizer"] {
            let mut file = letters();
            let pattern = json!({"Regex": case});
            file[part] = match part {
                "normalizer" => json!({"type": "Replace", "pattern": pattern, "content": "b"}),
                _ => json!({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false}),
            };
            all.push(encoded(&file, &text));
        }
        all.join("; ")
    });
    for (case, answer) in CASES.iter().zip(&answers) {
        let ends =
            |end: &str| end.ends_with(" tokens") || end.starts_with("not encoded: ") || end.starts_with("refused: ");
        assert!(answer.split("; ").all(ends), "{case}: {answer}");
    }
    if let [simple, ..] = &answers[..] {
        assert!(simple.starts_with("3001 tokens"), "{simple}");
    }
}

/// A table of what is replaced by what, in binary form: whatever is in it is found out when it is read, or when a text comes by.
#[test]
fn tables_of_characters_that_are_garbage_are_refused_or_do_nothing() {
    let cases: Vec<String> = (0..24).map(|seed| seed.to_string()).collect();
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    const NAME: &str = "tokenizers::tables_of_characters_that_are_garbage_are_refused_or_do_nothing";
    let answers = child::cases_within(ROOM, NAME, &cases, |case| {
        let mut random = test_kit::Random(case.parse().unwrap());
        let mut bytes: Vec<u8> = (0..4096).map(|_| random.below(256) as u8).collect();
        // How long the first part is said to be: nothing, all, more than there is; any number.
        let length = [0, 4, 256, 4000, 4092, 4093, 1 << 20, u32::MAX][random.below(8) as usize];
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let mut file = letters();
        file["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": base64(&bytes)});
        let text: String = (0..2_000).map(|_| char::from_u32(random.below(0xd800) as u32).unwrap()).collect();
        encoded(&file, &(text + "abc"))
    });
    for (case, answer) in cases.iter().zip(&answers) {
        assert!(!answer.is_empty(), "{case}");
    }
    assert!(answers.is_empty() || answers.iter().any(|answer| answer.starts_with("refused: ")), "{answers:?}");
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        let letters = (0..4).map(|place| char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]));
        text.extend(letters.take(three.len() + 1));
        text.extend(std::iter::repeat_n('=', 3 - three.len()));
    }
    text
}

#[test]
fn vocabularies_that_cannot_be_are_refused() {
    const CASES: &[(&str, &str)] = &[
        ("two tokens of one id", "have the id 0"),
        ("an id of 2^32 - 1", "4294967295"),
        ("an id of 2^32", "model"),
        ("an added token of the id 2^32 - 1", "4294967295"),
        ("an added token of the id of another", "<end>"),
        ("a hole of a hundred thousand ids", "100000"),
        ("an id below nothing", "model"),
        ("a piece of nothing and a score of none", "model"),
        ("a merge of what is not there", "zzz"),
        ("a token that comes before what it is of", "post_processor"),
    ];
    let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let answers = child::cases_within(ROOM, "tokenizers::vocabularies_that_cannot_be_are_refused", &names, |case| {
        let mut file = letters();
        let vocab = &mut file["model"]["vocab"];
        match case {
            "two tokens of one id" => vocab["b"] = json!(0),
            "an id of 2^32 - 1" => vocab["b"] = json!(u32::MAX),
            "an id of 2^32" => vocab["b"] = json!(1_u64 << 32),
            "an added token of the id 2^32 - 1" => file["added_tokens"][0]["id"] = json!(u32::MAX),
            "an added token of the id of another" => file["added_tokens"][0]["id"] = json!(3),
            "a hole of a hundred thousand ids" => vocab["b"] = json!(100_000),
            "an id below nothing" => vocab["b"] = json!(-1),
            "a piece of nothing and a score of none" => {
                file["model"] = json!({"type": "Unigram", "unk_id": 0, "vocab": [["", null], ["a", 0.0]]});
            }
            "a merge of what is not there" => file["model"]["merges"] = json!([["a", "zzz"]]),
            _ => {
                file["post_processor"] = json!({
                    "type": "TemplateProcessing",
                    "single": [{"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                    "special_tokens": {"<x>": {"id": "<x>", "ids": [u32::MAX], "tokens": ["<x>"]}}
                });
            }
        }
        encoded(&file, "abc")
    });
    for ((case, words), answer) in CASES.iter().zip(&answers) {
        assert!(answer.starts_with("refused: ") && answer.contains(words), "{case}: {answer}");
    }
}

/// Ids may be missing, within reason: such a vocabulary works.
#[test]
fn a_vocabulary_with_holes_encodes() {
    let mut file = letters();
    file["model"]["vocab"]["b"] = json!(40_000);
    assert_eq!(encoded(&file, "abc"), "3 tokens");
    let tokenizer = Tokenizer::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(tokenizer.vocab().len(), 40_001);
}
