//! The tokenizer vectors that come with llama.cpp: every case encodes to the same tokens, and comes back.

use infer::{Detokenizer, ModelSource, Special, Token, Tokenizer, VocabKind};
use kit::LlamaDetokenizer;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

/// What the pinned tree has: fewer means that a fixture is missing, more that the pin was moved.
const PAIR_COUNT: usize = 15;
const CASE_COUNT: usize = 694;

struct Pair {
    name: String,
    model: PathBuf,
    tokenizer: Arc<dyn Tokenizer>,
    cases: Vec<(String, Vec<Token>)>,
}

/// Every vocabulary that has vectors, loaded once.
static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let folder = build_support::fixtures::vocabularies().unwrap_or_else(|error| panic!("{error}"));
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut inputs: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "inp")).collect();
    inputs.sort();
    inputs.iter().map(|input| pair(input)).collect()
});

fn pair(input: &Path) -> Pair {
    let model = input.with_extension("");
    let source = ModelSource::new(&model).with_vocab_only(true);
    let tokenizer = source.open().unwrap_or_else(|error| panic!("{}: {error}", model.display())).tokenizer();
    let texts = fs::read_to_string(input).unwrap();
    let lines = fs::read_to_string(input.with_extension("out")).unwrap();
    // A separator may end the file, too: the lines say how many there are.
    let texts = texts.split("\n__ggml_vocab_test__\n").map(str::to_owned);
    let tokens = lines.lines().map(|line| line.split_whitespace().map(|id| Token(id.parse().unwrap())).collect());
    let cases = texts.zip(tokens).collect();
    let name = model.file_stem().unwrap().to_string_lossy().into_owned();
    Pair { name, model, tokenizer, cases }
}

fn of_kind(kind: VocabKind) -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(move |pair| pair.tokenizer.vocab().kind() == kind)
}

fn encode(tokenizer: &dyn Tokenizer, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, Special::NONE, &mut tokens).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    tokens
}

/// Token by token, as it comes out of a generation.
fn decode(mut detokenizer: Detokenizer, tokens: &[Token]) -> String {
    let mut text: String = tokens.iter().map(|&token| detokenizer.push(token).unwrap().to_owned()).collect();
    text.push_str(detokenizer.finish());
    text
}

#[test]
fn every_case_encodes_to_the_same_tokens() {
    let mut cases = 0;
    for pair in &*PAIRS {
        for (text, tokens) in &pair.cases {
            assert_eq!(&encode(&*pair.tokenizer, text), tokens, "{}: {text:?}", pair.name);
            cases += 1;
        }
    }
    assert_eq!((PAIRS.len(), cases), (PAIR_COUNT, CASE_COUNT));
}

#[test]
fn byte_pair_vocabularies_give_the_input_back() {
    for pair in of_kind(VocabKind::Bpe) {
        for (text, tokens) in &pair.cases {
            let detokenizer = Detokenizer::new(pair.tokenizer.vocab().clone());
            assert_eq!(&decode(detokenizer, tokens), text, "{}", pair.name);
        }
    }
    assert_eq!(of_kind(VocabKind::Bpe).count(), 12);
}

#[test]
fn sentencepiece_vocabularies_give_the_input_back_less_the_leading_space() {
    for pair in of_kind(VocabKind::Spm) {
        for (text, tokens) in &pair.cases {
            let detokenizer = Detokenizer::new(pair.tokenizer.vocab().clone());
            assert_eq!(&decode(detokenizer.clone(), tokens), text, "{}", pair.name);
            // In the middle of a text the space stays: the vocabulary has put it there.
            let kept = decode(detokenizer.with_leading_space(true), tokens);
            let space = if text.is_empty() { "" } else { " " };
            assert_eq!(kept, format!("{space}{text}"), "{}", pair.name);
        }
    }
    assert_eq!(of_kind(VocabKind::Spm).count(), 2);
}

#[test]
fn wordpiece_vocabularies_come_back_as_llama_cpp_has_them() {
    for pair in of_kind(VocabKind::WordPiece) {
        let llama = LlamaDetokenizer::open(&pair.model);
        for (text, tokens) in &pair.cases {
            let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
            let detokenizer = Detokenizer::new(pair.tokenizer.vocab().clone());
            let ours = decode(detokenizer, tokens);
            assert_eq!(ours.as_bytes(), llama.text(&ids, false), "{}: {text:?}", pair.name);
        }
    }
    assert_eq!(of_kind(VocabKind::WordPiece).count(), 1);
}
