//! Logits are those that mlx-lm computes, as they were written down when the models were made.

use crate::tiny::{feed, model, open, session};
use build_support::fixtures;
use infer_core::{Session as _, Token, Want};
use infer_mlx::{DType, safetensors};
use std::fs;

/// What lies beside a tiny model.
struct Expected {
    tokens: Vec<Token>,
    /// The logits after each token, computed with all others at once, and one by one behind the prompt.
    whole: Vec<f32>,
    steps: Vec<f32>,
    prompt: usize,
}

impl Expected {
    fn read(name: &str) -> Self {
        let path = fixtures::model(name).unwrap().join("expected.safetensors");
        let (header, bytes) = (safetensors::open(&path).unwrap(), fs::read(&path).unwrap());
        let words = |name: &str, dtype: DType| -> Vec<[u8; 4]> {
            let tensor = header.tensors().iter().find(|tensor| tensor.name() == name).unwrap();
            assert_eq!(tensor.dtype(), dtype);
            let part = &bytes[tensor.offset() as usize..][..tensor.bytes() as usize];
            part.as_chunks().0.to_vec()
        };
        let whole = |name| words(name, DType::U32).into_iter().map(u32::from_le_bytes);
        let floats = |name| words(name, DType::F32).into_iter().map(f32::from_le_bytes).collect();
        Self {
            tokens: whole("tokens").map(Token).collect(),
            whole: floats("whole"),
            steps: floats("steps"),
            prompt: whole("prompt").next().unwrap() as usize,
        }
    }
}

/// How far apart the two are for models in numbers of this size.
const F32: f32 = 1e-4;
const SHORT: f32 = 0.06;

fn compare(name: &str, most: f32) {
    let (model, expected) = (model(name), Expected::read(name));
    let mut session = session(&model);
    let vocab = session.limits().vocab;
    let mut worst = 0_f32;
    let mut compare = |row: &[f32], wanted: &[f32], at: usize| {
        let apart = row.iter().zip(&wanted[at * vocab..]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        worst = worst.max(apart);
        assert!(apart <= most, "{name}: the logits after token {at} are {apart} apart");
    };
    for at in [0, 1, 15, 16, 17, 40, expected.tokens.len() - 1] {
        let seq = open(&mut session);
        feed(&mut session, &seq, &expected.tokens[..=at], Want::Logits).unwrap();
        compare(session.outputs().logits(0).unwrap(), &expected.whole, at);
    }
    let seq = open(&mut session);
    let mut from = 0;
    for at in expected.prompt - 1..expected.tokens.len() {
        feed(&mut session, &seq, &expected.tokens[from..=at], Want::Logits).unwrap();
        compare(session.outputs().logits(0).unwrap(), &expected.steps, at);
        from = at + 1;
    }
    eprintln!("{name}: {worst}");
}

#[test]
fn models_in_32_bits() {
    for name in [
        "tiny-mlx-llama",
        "tiny-mlx-llama-sharded",
        "tiny-mlx-llama-4bit",
        "tiny-mlx-llama-mixed",
        "tiny-mlx-mistral",
        "tiny-mlx-mistral-windows",
        "tiny-mlx-qwen2",
        "tiny-mlx-qwen3",
        "tiny-mlx-gemma3",
        "tiny-mlx-phi3",
        "tiny-mlx-phi3-longrope",
    ] {
        compare(name, F32);
    }
}

/// Products are rounded in other places.
#[test]
fn models_in_16_bits() {
    for name in ["tiny-mlx-llama-f16", "tiny-mlx-llama-bf16", "tiny-mlx-gemma3-bf16"] {
        compare(name, SHORT);
    }
}
