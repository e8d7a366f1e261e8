//! Over the linked door, with SmolLM2 and a tiny model whose weights are random.

#[path = "../kit/mod.rs"]
mod kit;
#[path = "../kit/linked.rs"]
#[allow(dead_code, reason = "a test uses a part of it")]
mod linked;
mod models;
mod sessions;

use infer_core::{Special, Token, Tokenizer as _};
use infer_llama::{Llama, Model};
use linked::options;
use std::sync::LazyLock;

static SMOLLM2: LazyLock<Model> = LazyLock::new(|| linked::model("smollm2"));

fn llama() -> Llama {
    Llama::linked().unwrap()
}

fn encode(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    SMOLLM2.tokenizer().encode(text, Special::PARSE, &mut tokens).unwrap();
    tokens
}

fn story() -> Vec<Token> {
    encode(
        "Once upon a time there was a small compiler that lived in a forest of syntax trees. Every morning it woke up, ",
    )
}

/// The logits after `tokens`, computed from nothing in a session of its own.
fn alone(model: &Model, tokens: &[Token]) -> Vec<f32> {
    linked::alone(model, &options(), tokens)
}
