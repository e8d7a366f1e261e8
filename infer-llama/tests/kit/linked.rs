//! Sequences over the linked door, fed and compared.

use infer_core::{Batch, KvLayout, OpenOptions, Sequence, Session as _, Token, Want};
use infer_llama::{Llama, Model, Session, SessionOptions};

/// Logits that are closer were added in another order, or by another kernel. One other token among many moves them further.
pub(crate) const NEAR: f32 = 0.01;

pub(crate) const LAYOUTS: [KvLayout; 2] = [KvLayout::Split, KvLayout::Unified];

pub(crate) fn model(name: &str) -> Model {
    let path = build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"));
    Model::open(&Llama::linked().unwrap(), path).unwrap_or_else(|error| panic!("{error}"))
}

/// Pieces of 16: passes of a hundred tokens use other kernels than shorter ones, and come out up to 0.7 apart on SmolLM2. One thread: the
/// tests run beside each other, and threads that wait for each other on a busy machine wait for long.
pub(crate) fn options() -> SessionOptions {
    SessionOptions::new().with_context(256).with_sequences(3).with_threads(1).with_micro_batch(16)
}

pub(crate) fn session(model: &Model, options: &SessionOptions) -> Session {
    model.session(options).unwrap()
}

pub(crate) fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

/// Tokens that no other `seed` gives.
pub(crate) fn text(seed: u32, len: u32) -> Vec<Token> {
    (0..len).map(|i| Token((seed * 31 + i * i * 7 + i) % 250)).collect()
}

pub(crate) fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

/// The logits after `tokens`, computed from nothing in a session of its own.
pub(crate) fn alone(model: &Model, options: &SessionOptions, tokens: &[Token]) -> Vec<f32> {
    let mut session = session(model, options);
    let seq = open(&mut session);
    feed(&mut session, &seq, tokens)
}

pub(crate) fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().chain(b).all(|number| number.is_finite()));
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[track_caller]
pub(crate) fn assert_near(a: &[f32], b: &[f32], what: &str) {
    let apart = apart(a, b);
    assert!(apart < NEAR, "{what}: {apart} apart");
}
