//! Rows of logits lie in the session's memory.
use infer_core::Session as _;
use infer_llama::Session;

fn keep(session: Session) -> Option<&'static [f32]> {
    session.outputs().logits(0)
}

fn main() {
    let _ = keep;
}
