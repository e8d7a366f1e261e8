use infer_core::{Result, Sequence, Session};

fn stale(session: &mut dyn Session, seq: &Sequence) -> Result<f32> {
    let logits = session.outputs().logits(0).unwrap();
    session.truncate(seq, 0)?;
    Ok(logits[0])
}

fn main() {}
