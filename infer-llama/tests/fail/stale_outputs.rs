//! What a pass brought ends with the next call that changes the session.
use infer_core::{Batch, Session as _};
use infer_llama::Session;

fn two_passes(session: &mut Session, batch: &Batch) {
    session.decode(batch).unwrap();
    let first = session.outputs();
    session.decode(batch).unwrap();
    println!("{:?}", first.token(0));
}

fn main() {
    let _ = two_passes;
}
