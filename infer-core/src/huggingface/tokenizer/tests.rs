use super::*;
use crate::{Detokenizer, Tokenizer as _, VocabKind};
use serde_json::json;

fn open(file: &Value) -> Tokenizer {
    open_with(file, &Settings::default())
}

fn open_with(file: &Value, settings: &Settings) -> Tokenizer {
    Tokenizer::parse(file.to_string().as_bytes(), settings).unwrap()
}

/// What is wrong with a file.
fn refused(file: &Value) -> String {
    let error = Tokenizer::from_json(file.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
    error.to_string()
}

fn encode(tokenizer: &Tokenizer, text: &str, special: Special) -> Vec<u32> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, special, &mut tokens).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    tokens.into_iter().map(|token| token.0).collect()
}

fn special(id: u32, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})
}

/// Byte-level, with a token for each byte that the tests use, `ab`, and `<|im_end|>` in the model as well as beside it.
fn byte_level() -> Value {
    let mut vocab: serde_json::Map<String, Value> =
        "abcdefghijklmnopqrstuvwxyz_<>|ĠĊÃ©".chars().zip(0..).map(|(c, id)| (c.to_string(), json!(id))).collect();
    vocab.insert("ab".into(), json!(40));
    vocab.insert("<|im_end|>".into(), json!(41));
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "a"},
        "added_tokens": [special(41, "<|im_end|>"), special(42, "<bos>"), {"id": 43, "content": "<tool>", "special": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [42], "tokens": ["<bos>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": 0.5, "unk_token": null, "ignore_merges": true, "vocab": vocab, "merges": ["#version: 0.2", "a b"]},
    })
}

#[test]
fn text_becomes_tokens_and_comes_back() {
    let tokenizer = open(&byte_level());
    assert_eq!(encode(&tokenizer, "ab a", Special::NONE), [40, 30, 0]);
    let text = "ab é\nz ab";
    let tokens: Vec<Token> = encode(&tokenizer, text, Special::NONE).into_iter().map(Token).collect();
    assert_eq!(Detokenizer::new(tokenizer.vocab().clone()).decode(&tokens).unwrap(), text);
    assert_eq!(tokenizer.vocab().kind(), VocabKind::Bpe);
    assert!(!tokenizer.vocab().space_prefix());
    assert_eq!(encode(&tokenizer, "", Special::ADD), [42]);
    // Neither is a text cut, nor made longer, nor is anything left to chance, whatever the file says of how it was trained.
    assert_eq!(encode(&tokenizer, "ababab", Special::NONE), [40; 3]);
}

#[test]
fn control_tokens_come_from_parsing_alone() {
    let tokenizer = open(&byte_level());
    let spelled = encode(&tokenizer, "a<|im_end|>", Special::NONE);
    assert_eq!(spelled.len(), 11);
    assert!(spelled.iter().all(|&id| !tokenizer.vocab().is_control(Token(id))), "{spelled:?}");
    assert_eq!(encode(&tokenizer, "a<|im_end|>", Special::PARSE), [0, 41]);
    assert_eq!(encode(&tokenizer, "<bos>a", Special::PARSE), [42, 0]);
    assert_eq!(encode(&tokenizer, "<bos>", Special::ADD), [42, 27, 1, 14, 18, 28]);
    // What was added as text is text.
    assert_eq!(encode(&tokenizer, "a<tool>", Special::NONE), [0, 43]);
    assert_eq!(encode(&tokenizer, "a<tool>", Special::PARSE), [0, 43]);
    assert!(!tokenizer.vocab().is_control(Token(43)));
}

/// A word that is looked up whole is not found where it is a control token's name, in any family.
#[test]
fn control_tokens_are_no_pieces_of_a_model() {
    let words = json!({"[UNK]": 0, "[CLS]": 1, "go": 2, "##ing": 3, "[": 4, "##cls": 5});
    let spaces = json!({"type": "WhitespaceSplit"});
    let word_piece = json!({"added_tokens": [special(1, "[CLS]")], "pre_tokenizer": spaces,
        "model": {"type": "WordPiece", "vocab": words, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}});
    let tokenizer = open(&word_piece);
    assert_eq!(encode(&tokenizer, "going [CLS]", Special::NONE), [2, 3, 0]);
    assert_eq!(encode(&tokenizer, "going [CLS]", Special::PARSE), [2, 3, 1]);
    assert_eq!(encode(&tokenizer, "[UNK] go", Special::NONE), [0, 2]);
    assert_eq!(tokenizer.vocab().kind(), VocabKind::WordPiece);
    assert_eq!(tokenizer.vocab().bytes(Token(2)), Some(&b" go"[..]));

    let word_level = json!({"added_tokens": [special(1, "[CLS]")], "pre_tokenizer": spaces,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}});
    assert_eq!(encode(&open(&word_level), "go [CLS]", Special::NONE), [2, 0]);

    let pieces = json!([
        ["<unk>", 0.0],
        ["</s>", 0.0],
        ["▁", -3.0],
        ["a", -2.0],
        ["<", -9.0],
        ["/", -9.0],
        ["s", -9.0],
        [">", -9.0]
    ]);
    let unigram = json!({"added_tokens": [special(1, "</s>")],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "vocab": pieces, "unk_id": 0}});
    let tokenizer = open(&unigram);
    assert_eq!(encode(&tokenizer, "a</s>", Special::NONE), [2, 3, 4, 5, 6, 7]);
    assert_eq!(encode(&tokenizer, "a</s>", Special::PARSE), [2, 3, 1]);
    assert_eq!(encode(&tokenizer, "<unk>?", Special::NONE), [2, 4, 0, 7, 0]);
    assert!(tokenizer.vocab().is_end(Token(1)) && tokenizer.vocab().is_control(Token(0)));
}

#[test]
fn sentencepiece_puts_a_space_before_a_text() {
    let mut vocab = json!({"<unk>": 0, "▁": 1, "a": 2, "▁a": 3, "b": 4});
    for byte in 0..=255 {
        vocab[format!("<0x{byte:02X}>")] = json!(5 + byte);
    }
    let llama = |normalizers: Value| {
        json!({"added_tokens": [special(0, "<unk>")], "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": [["▁", "a"]]}})
    };
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let tokenizer = open(&llama(json!([{"type": "Prepend", "prepend": "▁"}, replace])));
    assert_eq!(encode(&tokenizer, "a bé", Special::NONE), [3, 1, 4, 5 + 0xC3, 5 + 0xA9]);
    let vocab = tokenizer.vocab();
    assert_eq!((vocab.kind(), vocab.space_prefix()), (VocabKind::Spm, true));
    assert_eq!((vocab.bytes(Token(3)), vocab.bytes(Token(5 + 0xC3))), (Some(&b" a"[..]), Some(&b"\xC3"[..])));
    assert!(vocab.flags(Token(5)).byte && !vocab.flags(Token(3)).byte);
    let tokens: Vec<Token> = encode(&tokenizer, "a bé", Special::NONE).into_iter().map(Token).collect();
    assert_eq!(Detokenizer::new(vocab.clone()).decode(&tokens).unwrap(), "a bé");
    assert!(!open(&llama(json!([replace]))).vocab().space_prefix());
}

#[test]
fn roles_and_ends_come_from_the_files_beside() {
    let mut settings =
        Settings { eos: Some("<|im_end|>".into()), pad_id: Some(1), ends: vec![2], ..Settings::default() };
    let tokenizer = open_with(&byte_level(), &settings);
    let (vocab, special) = (tokenizer.vocab(), *tokenizer.vocab().special());
    assert_eq!(
        (special.eos, special.eot, special.pad, special.bos),
        (Some(Token(41)), Some(Token(41)), Some(Token(1)), None)
    );
    // A token of the model that ends a generation is text all the same.
    assert!(
        vocab.is_end(Token(41)) && vocab.is_end(Token(2)) && !vocab.is_control(Token(2)) && !vocab.is_end(Token(42))
    );
    settings.bos = Some("<bos>".into());
    let special = *open_with(&byte_level(), &settings).vocab().special();
    assert_eq!((special.bos, special.add_bos, special.add_eos), (Some(Token(42)), true, false));
    (settings.add_bos, settings.add_eos) = (Some(false), Some(true));
    let tokenizer = open_with(&byte_level(), &settings);
    assert_eq!(encode(&tokenizer, "a", Special::ADD), [0, 41]);
    let special = tokenizer.vocab().special();
    assert!(special.add_eos && !special.add_bos);
    settings.ends = vec![4711];
    let error = Tokenizer::parse(byte_level().to_string().as_bytes(), &settings).unwrap_err();
    assert!(error.to_string().contains("eos_token_id is 4711"), "{error}");
}

#[test]
fn a_vocabulary_has_as_many_tokens_as_the_weights_have_rows() {
    let with = |rows| open_with(&byte_level(), &Settings { vocab: Some(rows), ..Settings::default() });
    assert_eq!(open(&byte_level()).vocab().len(), 44);
    let padded = with(64);
    assert_eq!((padded.vocab().len(), padded.vocab().bytes(Token(63))), (64, Some(&b""[..])));
    assert!(padded.vocab().is_control(Token(63)));
    // One that was added for other models of the family has no row, and is not recognised.
    let cut = with(43);
    assert_eq!(cut.vocab().len(), 43);
    assert_eq!(encode(&cut, "<tool>", Special::PARSE).len(), 6);
    // A vocabulary of another model is left for whoever compares it with the weights.
    assert_eq!(with(30_000).vocab().len(), 44);
    assert_eq!(with(20).vocab().len(), 44);
}

#[test]
fn two_texts_are_put_together_as_the_file_says() {
    let mut file = byte_level();
    assert!(open(&file).pair_form().is_none());
    file["post_processor"] = json!({"type": "BertProcessing", "sep": ["<|im_end|>", 41], "cls": ["<bos>", 42]});
    let tokenizer = open(&file);
    assert_eq!(encode(&tokenizer, "a", Special::ADD), [42, 0, 41]);
    let form = tokenizer.pair_form().unwrap();
    let mut tokens = vec![Token(7)];
    form.encode(&tokenizer, "a", "b<bos>", &mut tokens).unwrap();
    let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
    assert_eq!(ids, [7, 42, 0, 41, 1, 27, 1, 14, 18, 28, 41]);
    assert_eq!((form.between(), form.types()), (&[Token(41)][..], [0, 1]));
    assert!(form.encode(&tokenizer, "a", &"b".repeat(MAX_TEXT + 1), &mut tokens).is_err());
    assert_eq!(tokens.len(), ids.len());
}

#[test]
fn files_that_contradict_themselves_are_refused_by_name() {
    let change = |change: &dyn Fn(&mut Value)| {
        let mut file = byte_level();
        change(&mut file);
        refused(&file)
    };
    let said = change(&|file| file["added_tokens"][0]["id"] = json!(50));
    assert!(said.contains("<|im_end|>") && said.contains("50"), "{said}");
    let said = change(&|file| file["added_tokens"][1]["id"] = json!(43));
    assert!(said.contains("twice"), "{said}");
    let said = change(&|file| file["model"]["vocab"]["zz"] = file["added_tokens"][0]["id"].clone());
    assert!(said.contains("<|im_end|>") && said.contains("\"zz\""), "a text that would be a control token: {said}");
    let said = change(&|file| file["model"]["vocab"]["b"] = json!(0));
    assert!(said.contains("have the id 0"), "{said}");
    let said = change(&|file| file["model"]["vocab"]["b"] = json!(4_000_000_000_u32));
    assert!(said.contains("4000000000"), "{said}");
    let said = change(&|file| file["model"]["vocab"]["b"] = json!(-1));
    assert!(said.contains("model"), "{said}");
    let said = change(&|file| file["model"]["merges"] = json!([["a", "q_"]]));
    assert!(said.contains("q_"), "{said}");
    let said = change(&|file| file["model"]["merges"] = json!(["a b c"]));
    assert!(said.contains("no merge"), "{said}");
    let said = change(&|file| file["model"]["continuing_subword_prefix"] = json!("#####"));
    assert!(said.contains("does not begin with") || said.contains("begins with"), "{said}");
    let said = change(&|file| file["model"]["type"] = json!("Magic"));
    assert!(said.contains("Magic") && said.contains("Unigram"), "{said}");
    let said = change(&|file| file["model"] = json!(null));
    assert!(said.contains("model"), "{said}");
    let said = change(&|file| file["post_processor"]["special_tokens"]["<bos>"]["ids"] = json!([4711]));
    assert!(said.contains("4711"), "{said}");
    let said = change(&|file| file["post_processor"]["single"] = json!([]));
    assert!(said.contains("post_processor"), "{said}");
    let said = change(&|file| {
        file["pre_tokenizer"] =
            json!({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false})
    });
    assert!(said.contains("pre_tokenizer"), "{said}");
    let said = change(&|file| file["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"}));
    assert!(said.contains("panicked") || said.contains("normalizer"), "{said}");
}

#[test]
fn what_is_no_tokenizer_is_refused() {
    for json in [&b""[..], b"{", b"[]", b"null", b"\xFF\xFE", b"{\"model\": {\"type\": \"BPE\"}}"] {
        let error = Tokenizer::from_json(json).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
    }
    // Nested as deep as one likes: no stack is run over.
    let deep = format!("{{\"normalizer\": {}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(Tokenizer::from_json(deep.as_bytes()).unwrap_err().kind(), ErrorKind::InvalidModel);
    let deep = format!("{{\"model\": {}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert_eq!(Tokenizer::from_json(deep.as_bytes()).unwrap_err().kind(), ErrorKind::InvalidModel);
    let long =
        json!({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a".repeat(100_000), 0.0]]}});
    assert!(refused(&long).contains("token 1"));
}

#[test]
fn long_texts_run_over_no_stack() {
    let tokenizer = open(&byte_level());
    for text in ["a".repeat(300_000), " ".repeat(300_000), "<".repeat(300_000), "a ".repeat(150_000)] {
        let tokens: Vec<Token> = encode(&tokenizer, &text, Special::PARSE).into_iter().map(Token).collect();
        assert_eq!(Detokenizer::new(tokenizer.vocab().clone()).decode(&tokens).unwrap(), text);
    }
    let longest = json!({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a".repeat(1024), 0.0], ["a", -1.0]]}});
    assert_eq!(encode(&open(&longest), &"a".repeat(3 * 1024), Special::NONE), [1, 1, 1]);
}

#[test]
fn a_text_that_is_too_long_or_cannot_be_encoded_leaves_what_was_there() {
    let tokenizer = open(&byte_level());
    let mut out = vec![Token(7)];
    let error = tokenizer.encode(&" ".repeat(MAX_TEXT + 1), Special::ADD, &mut out).unwrap_err();
    assert_eq!((error.kind(), error.backend()), (ErrorKind::InvalidInput, None));
    // The unknown token that this model names is not there.
    let file = json!({"model": {"type": "WordPiece", "vocab": {"go": 0}, "unk_token": "[UNK]", "max_input_chars_per_word": 100}});
    let error = open(&file).with_backend("mine").encode("x", Special::ADD, &mut out).unwrap_err();
    assert_eq!((error.kind(), error.backend()), (ErrorKind::Runtime, Some("mine")));
    assert_eq!(out, [Token(7)]);
}

#[test]
fn ids_are_the_files_own() {
    // By itself the crate would number the added token 2, behind the model's.
    let file = json!({"added_tokens": [special(9, "<end>"), special(8, "</s>")], "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}});
    let tokenizer = open(&file);
    assert_eq!(encode(&tokenizer, "a<end></s>", Special::PARSE), [0, 9, 8]);
    assert_eq!((tokenizer.vocab().len(), tokenizer.vocab().bytes(Token(5))), (10, Some(&b""[..])));
}
