use infer_core::{Encoder, Result, Token};

fn stale(encoder: &mut dyn Encoder, texts: &[&[Token]]) -> Result<f32> {
    let vector = encoder.vectors().vector(0).unwrap();
    encoder.encode(texts)?;
    Ok(vector[0])
}

fn main() {}
