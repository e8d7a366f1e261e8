//! A tokenizer with the files beside it, as a folder has them.

use infer_core::{
    ErrorKind, Special, Token, Tokenizer as _,
    huggingface::{Settings, Tokenizer},
};
use std::fs;
use test_kit::Folder;

const TOKENIZER: &str = r#"{
    "added_tokens": [{"id": 3, "content": "<s>", "special": true}, {"id": 4, "content": "<end>", "special": false},
        {"id": 5, "content": "<turn>", "special": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
}"#;

/// A folder with a tokenizer in it.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("tokenizer.json", TOKENIZER);
    folder
}

fn open(folder: &Folder) -> Tokenizer {
    Tokenizer::open(folder.path()).unwrap_or_else(|error| panic!("{error}"))
}

fn encode(tokenizer: &Tokenizer, text: &str, special: Special) -> Vec<u32> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, special, &mut tokens).unwrap();
    tokens.into_iter().map(|token| token.0).collect()
}

#[test]
fn roles_have_their_names_in_the_settings_and_their_ids_in_the_models_own() {
    let folder = folder();
    let alone = *open(&folder).vocab().special();
    assert_eq!((alone.bos, alone.eos), (None, None));
    // By number first, in any of the three files; and a name where there is one.
    folder.file("config.json", r#"{"eos_token_id": 5, "bos_token_id": 3, "pad_token_id": null, "vocab_size": 8}"#);
    folder.file("generation_config.json", r#"{"eos_token_id": [4, -1]}"#);
    let tokenizer = open(&folder);
    let special = tokenizer.vocab().special();
    assert_eq!((special.bos, special.eos, special.pad), (Some(Token(3)), Some(Token(4)), None));
    let ends: Vec<u32> = (0..8).filter(|&id| tokenizer.vocab().is_end(Token(id))).collect();
    assert_eq!((ends, tokenizer.vocab().len()), (vec![4, 5], 8));
    // A token that ends a text is structure, whatever its file calls it.
    assert_eq!(encode(&tokenizer, "ab<end>", Special::PARSE), [2, 4]);
    assert!(!encode(&tokenizer, "ab<end>", Special::NONE).contains(&4));
    folder.file("tokenizer_config.json", r#"{"eos_token": {"content": "<turn>"}, "add_bos_token": true}"#);
    folder.file("special_tokens_map.json", r#"{"eos_token": "a", "pad_token": "b"}"#);
    let tokenizer = open(&folder);
    let special = tokenizer.vocab().special();
    assert_eq!((special.eos, special.pad, special.add_bos), (Some(Token(5)), Some(Token(1)), true));
    assert_eq!(encode(&tokenizer, "a", Special::ADD), [3, 0]);
    // Padding that is text elsewhere stays text.
    assert_eq!(encode(&tokenizer, "bb", Special::NONE), [1, 1]);
    folder.file("genai_config.json", r#"{"model": {"eos_token_id": 3, "decoder": {}}}"#);
    assert!(open(&folder).vocab().is_end(Token(3)));
}

#[test]
fn files_beside_it_that_are_damaged_are_named() {
    for (name, text, why) in [
        ("tokenizer_config.json", "{\"eos_token\": 7}", "a token is wanted: its text, or"),
        ("tokenizer_config.json", "{\"chat_template\": [1]}", "a chat template is wanted: a text, or"),
        ("special_tokens_map.json", "[", "EOF"),
        ("generation_config.json", "{\"eos_token_id\": \"two\"}", "the id of a token is wanted: a whole number, or"),
        ("config.json", "{\"vocab_size\": -1}", "invalid value: integer `-1`"),
        ("genai_config.json", "{\"model\": 1}", "invalid type: integer `1`"),
    ] {
        let folder = folder();
        folder.file(name, text);
        let error = Tokenizer::open(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel);
        let said = error.to_string();
        assert!(said.contains(name) && said.contains(why), "{said}");
    }
    let folder = folder();
    folder.file("config.json", r#"{"eos_token_id": 1000000000}"#);
    let error = Tokenizer::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains("eos_token_id is 1000000000"), "{error}");
}

#[test]
fn a_file_that_is_missing_or_none_is_an_error_by_name() {
    let folder = folder();
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let error = Tokenizer::open(folder.path()).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("tokenizer.json"), "{error}");
    fs::create_dir(folder.path().join("tokenizer.json")).unwrap();
    assert_eq!(Tokenizer::open(folder.path().join("tokenizer.json")).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn the_chat_template_is_the_one_for_a_conversation() {
    let folder = folder();
    let template = || Settings::read(folder.path()).unwrap().chat_template().map(str::to_owned);
    assert_eq!(template(), None);
    let several = r#"[{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "talk"}]"#;
    folder.file("tokenizer_config.json", &format!(r#"{{"chat_template": {several}}}"#));
    assert_eq!(template().as_deref(), Some("talk"));
    folder.file("tokenizer_config.json", r#"{"chat_template": "one"}"#);
    assert_eq!(template().as_deref(), Some("one"));
    // A file of its own has the last word.
    folder.file("chat_template.jinja", "alone");
    assert_eq!(template().as_deref(), Some("alone"));
}
