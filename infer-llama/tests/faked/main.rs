//! Over the faked door: what the library would have to misbehave to show.

#[path = "../kit/mod.rs"]
mod kit;
mod loading;
mod owning;
mod passes;

use infer_core::{
    Batch, Error, ErrorKind, KvLayout, OpenOptions, Sampling, Sequence, Session as _, Special, Token, Tokenizer as _,
    Want,
};
use infer_llama::{Llama, LoadMode, Model, ModelOptions, Session, SessionOptions};
use infer_sys::llama::bindings::GGML_LOG_LEVEL_WARN;
use infer_sys::llama::fake::{self, Control, Fault, Kind, Live, Rows, Script};
use kit::{lora, tiny};
use std::{
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex},
};
use test_kit::{Folder, Listener};

/// A model over the faked door, and what steers it.
struct Faked {
    control: Control,
    model: Model,
    _folder: Folder,
}

fn faked(script: Script) -> Faked {
    let folder = Folder::new();
    let path = folder.file("faked.gguf", &tiny::llama().bytes());
    let control = script.install();
    // On the processor, whose memory a session must fit.
    let model = Model::open_with(&llama(), path, &ModelOptions::new().with_devices(["CPU"])).unwrap();
    Faked { control, model, _folder: folder }
}

fn llama() -> Llama {
    Llama::from_api(fake::api()).unwrap()
}

fn options() -> SessionOptions {
    SessionOptions::new().with_context(256).with_sequences(4).with_batch(64).with_micro_batch(4).with_threads(2)
}

fn tokens(range: std::ops::Range<u32>) -> Vec<Token> {
    range.map(Token).collect()
}

fn open(session: &mut Session) -> Sequence {
    session.open(&OpenOptions::default()).unwrap()
}

fn feed(session: &mut Session, seq: &Sequence, tokens: &[Token], want: Want) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, want);
    session.decode(&batch)
}

/// The logits after `tokens`, computed by themselves in a session of their own.
fn alone(model: &Model, tokens: &[Token]) -> Vec<f32> {
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, tokens, Want::Logits).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}
