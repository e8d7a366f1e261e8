//! A row of logits does not survive a fork either.
use infer_core::{Sequence, Session as _};
use infer_llama::Session;

fn fork(session: &mut Session, parent: &Sequence) -> f32 {
    let row = session.outputs().logits(0).unwrap();
    let _child = session.fork(parent, 1).unwrap();
    row[0]
}

fn main() {
    let _ = fork;
}
