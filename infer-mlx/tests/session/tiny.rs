//! Tiny models with random weights, and how their sessions are driven.

use crate::kit;
use build_support::fixtures;
use infer_core::{Batch, OpenOptions, Result, Sequence, Session as _, Token, Want};
use infer_mlx::{Model, Session, SessionOptions};

/// Logits of the same tokens are at most so far apart, however they were cut into steps.
pub(crate) const NEAR: f32 = 1e-4;

pub(crate) fn model(name: &str) -> Model {
    let folder = fixtures::model(name).unwrap_or_else(|error| panic!("{error}"));
    Model::open(&kit::mlx(), folder).unwrap()
}

/// All layers see everything.
pub(crate) fn llama() -> Model {
    model("tiny-mlx-llama")
}

/// Two layers of three see 16 positions.
pub(crate) fn windowed() -> Model {
    model("tiny-mlx-mistral-windows")
}

pub(crate) fn session(model: &Model) -> Session {
    model.session(&options()).unwrap()
}

pub(crate) fn options() -> SessionOptions {
    SessionOptions::new().with_sequences(8)
}

pub(crate) fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

/// Tokens that look like any, the same each time.
pub(crate) fn tokens(count: usize, seed: u32) -> Vec<Token> {
    kit::numbers(count, seed).into_iter().map(|number| Token(((number + 1.0) * 127.0) as u32)).collect()
}

/// Feeds tokens of one sequence.
pub(crate) fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// The logits after tokens that one sequence is fed.
pub(crate) fn logits(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    feed(session, seq, tokens, Want::Logits).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

/// The logits after these tokens, fed to a sequence of its own at once.
pub(crate) fn anew(session: &mut Session, tokens: &[Token]) -> Vec<f32> {
    let seq = open(session);
    logits(session, &seq, tokens)
}

#[track_caller]
pub(crate) fn assert_same(one: &[f32], other: &[f32]) {
    assert_eq!(one.len(), other.len());
    let apart = one.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart <= NEAR, "{apart} apart");
}
