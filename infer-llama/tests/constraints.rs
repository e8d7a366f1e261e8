//! Over the linked door, with SmolLM2: what is drawn keeps to its constraint, at temperature 1.

mod kit;
#[path = "kit/linked.rs"]
#[allow(dead_code, reason = "each test uses a part of it")]
mod linked;

use infer_core::{Batch, Constraint, Sampling, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{Model, Session};
use linked::{model, open, options};
use serde_json::Value;

const TICKET: &str = r#"{
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 40},
        "priority": {"enum": ["low", "normal", "high"]},
        "labels": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
        "hours": {"type": "number", "minimum": 0, "maximum": 80},
        "done": {"type": "boolean"}
    },
    "required": ["title", "priority", "labels", "hours", "done"],
    "additionalProperties": false
}"#;

fn encode(model: &Model, text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    model.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

fn prompt(model: &Model) -> Vec<Token> {
    encode(model, "<|im_start|>user\nA ticket, as JSON.<|im_end|>\n<|im_start|>assistant\n")
}

/// The tokens until one ends the text, and how many passes they took.
fn draw(session: &mut Session, sampling: &Sampling, prompt: &[Token], together: bool) -> (Vec<Token>, usize) {
    let seq = open(session);
    session.sample_with(&seq, sampling, prompt).unwrap();
    let (mut batch, mut next, mut drawn, mut passes) = (Batch::new(), prompt.to_vec(), Vec::new(), 0);
    let vocab = session.llama_model().tokenizer().vocab().clone();
    loop {
        batch.clear();
        let entry = batch.push(&seq, &next, Want::Token);
        session.decode(&batch).unwrap();
        passes += 1;
        let found = session.outputs().sampled(entry);
        assert!(found[0].logprob <= 0.0 && found[1..].iter().all(|forced| forced.logprob.is_nan()));
        let found = if together { found } else { &found[..1] };
        next = found.iter().map(|sampled| sampled.token).collect();
        drawn.extend_from_slice(&next);
        if vocab.is_end(drawn[drawn.len() - 1]) {
            return (drawn, passes);
        }
        assert!(drawn.len() < 400, "it does not end");
    }
}

fn text(model: &Model, tokens: &[Token]) -> String {
    let vocab = model.tokenizer().vocab();
    let bytes = tokens[..tokens.len() - 1].iter().flat_map(|&token| vocab.bytes(token).unwrap()).copied();
    String::from_utf8(bytes.collect()).unwrap()
}

fn check(text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let ticket = value.as_object().unwrap();
    assert_eq!(ticket.len(), 5, "{text}");
    assert!((1..=40).contains(&ticket["title"].as_str().unwrap().chars().count()), "{text}");
    assert!(["low", "normal", "high"].contains(&ticket["priority"].as_str().unwrap()), "{text}");
    assert!(ticket["labels"].as_array().unwrap().len() <= 3, "{text}");
    assert!((0.0..=80.0).contains(&ticket["hours"].as_f64().unwrap()), "{text}");
    assert!(ticket["done"].is_boolean(), "{text}");
}

fn warm(seed: u64) -> Sampling {
    let constraint = Constraint::json_schema(TICKET);
    Sampling::default().with_temperature(1.0).with_seed(seed).with_constraint(constraint)
}

#[test]
fn documents_are_valid_and_forced_tokens_save_passes() {
    let model = model("smollm2");
    let prompt = prompt(&model);
    let mut session = model.session(&options().with_context(512)).unwrap();
    for seed in 0..3 {
        let (drawn, passes) = draw(&mut session, &warm(seed), &prompt, true);
        check(&text(&model, &drawn));
        assert!(passes + 8 < drawn.len(), "{passes} passes for {} tokens", drawn.len());
    }
}

/// The first ones only: a pass of several tokens adds up in another order than one of one token, and may draw another one some time.
#[test]
fn forced_tokens_fed_one_by_one_are_drawn_again() {
    let model = model("smollm2");
    let prompt = prompt(&model);
    let mut session = model.session(&options().with_context(512)).unwrap();
    let (together, _) = draw(&mut session, &warm(5), &prompt, true);
    let (one_by_one, passes) = draw(&mut session, &warm(5), &prompt, false);
    check(&text(&model, &one_by_one));
    assert_eq!(passes, one_by_one.len());
    assert_eq!(together[..6], one_by_one[..6]);
}

#[test]
fn with_a_budget_a_document_without_bounds_is_whole() {
    const NOTE: &str = r#"{
        "type": "object",
        "properties": {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["text", "tags"],
        "additionalProperties": false
    }"#;
    let model = model("smollm2");
    let prompt = prompt(&model);
    let mut session = model.session(&options().with_context(512)).unwrap();
    for (seed, budget) in [(0, 16), (1, 24), (2, 32)] {
        let constraint = Constraint::json_schema(NOTE).with_budget(budget);
        let sampling = Sampling::default().with_temperature(1.0).with_seed(seed).with_constraint(constraint);
        let (drawn, _) = draw(&mut session, &sampling, &prompt, true);
        assert!(drawn.len() <= budget + 1, "{} tokens of {budget}", drawn.len());
        let value: Value = serde_json::from_str(&text(&model, &drawn)).unwrap();
        assert!(value["text"].is_string() && value["tags"].as_array().unwrap().iter().all(Value::is_string), "{value}");
    }
}
