//! Misuse that llama.cpp answers with the end of the process, with an exception, or with silence. Each case runs in a child process: an
//! abort, a signal or a hang fails it, and so does an answer that is not the error by its name. What was misused works afterwards.
//!
//! `docs/soundness.md` has the whole list, with the places of the cases that are proved elsewhere.

mod door;
mod folders;
mod mlx;
mod onnx;
mod options;
mod passes;
mod together;
mod tokenizers;

#[path = "../../infer-llama/tests/kit/mod.rs"]
mod files;

use files::tiny;
use infer::{Batch, Error, ErrorKind, OpenOptions, Result, Sequence, Session as _, Token, Want};
use infer_llama::{Llama, Model, Session, SessionOptions};
use test_kit::Folder;

/// A tiny decoder, and the folder its file lies in.
fn model() -> (Folder, Model) {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    let model = Model::open(&Llama::linked().unwrap(), path).unwrap();
    (folder, model)
}

fn options() -> SessionOptions {
    SessionOptions::new().with_context(256).with_sequences(2).with_threads(1)
}

fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn tokens(count: u32) -> Vec<Token> {
    (0..count).map(|token| Token(token % 256)).collect()
}

/// One pass that appends these tokens, with the last one's logits.
fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Result<Vec<f32>> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch)?;
    Ok(session.outputs().logits(0).expect("they were wanted").to_vec())
}

/// What a sequence computes after `tokens`, in a session of its own.
fn alone(model: &Model, tokens: &[Token]) -> Vec<f32> {
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, tokens).unwrap()
}

/// The kind of an error, whose text has all of `words`; else what was got instead.
fn said<T>(outcome: Result<T>, kind: ErrorKind, words: &[&str]) -> String {
    let Err(error) = outcome else { return "taken in silence".to_owned() };
    let text = error.to_string();
    let missing: Vec<_> = words.iter().filter(|word| !text.contains(*word)).collect();
    if error.kind() == kind && missing.is_empty() { "refused".to_owned() } else { shown(&error) }
}

fn shown(error: &Error) -> String {
    format!("{:?}: {error}", error.kind())
}
