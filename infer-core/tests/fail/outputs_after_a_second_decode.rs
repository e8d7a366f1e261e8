use infer_core::{Batch, Result, Session, Token};

fn stale(session: &mut dyn Session, batch: &Batch) -> Result<Option<Token>> {
    session.decode(batch)?;
    let outputs = session.outputs();
    session.decode(batch)?;
    Ok(outputs.token(0))
}

fn main() {}
