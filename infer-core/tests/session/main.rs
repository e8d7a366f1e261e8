//! The laws of [`Session`], shown on the scripted one: misuse is an error and harms nobody, a pass is all or nothing,
//! and results depend on the tokens of a sequence alone.

mod a_pass;
mod adapters;
mod cells;
mod hooked;
mod misuse;
mod models_that_cannot_go_back;
mod results;
mod saved_states;
mod script;
mod shift;

use infer_core::{
    Batch, Capabilities, Error, ErrorKind, KvLayout, Model, OpenOptions, Result, Sampling, Sequence, Session,
    SessionOptions, Special, Token, Want,
    testing::{Cuts, EOS, Fault, IM_END, Script, Scripted, ScriptedModel},
};

fn session(script: Script, sequences: usize) -> Scripted {
    ScriptedModel::new(script).scripted(&SessionOptions::new().with_sequences(sequences)).unwrap()
}

fn open(session: &mut dyn Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn tokens(text: &str) -> Vec<Token> {
    text.bytes().map(|byte| Token(byte.into())).collect()
}

/// Feeds `tokens` in one pass of one entry.
fn feed(session: &mut dyn Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// The logits after feeding `tokens`.
fn logits(session: &mut dyn Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    feed(session, seq, tokens, Want::Logits).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

/// The logits after `tokens`, computed from nothing in another session.
fn recomputed(tokens: &[Token]) -> Vec<f32> {
    let mut fresh = session(Script::new(), 1);
    let seq = open(&mut fresh);
    logits(&mut fresh, &seq, tokens)
}

/// Feeds what is missing of `log` and goes on for `n` tokens, which are added to `log` but the last of which is not fed.
fn generate(session: &mut dyn Session, seq: &Sequence, log: &mut Vec<Token>, n: usize) {
    let mut batch = Batch::new();
    for _ in 0..n {
        batch.clear();
        batch.push(seq, &log[seq.len()..], Want::Token);
        session.decode(&batch).unwrap();
        log.push(session.outputs().token(0).unwrap());
    }
}

fn kind<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => error.kind(),
    }
}
