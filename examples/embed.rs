//! Semantic search: the sentences that are nearest to a question, by the vectors of an embedding model.
//!
//! `cargo run -p infer-examples --bin embed -- MODEL QUESTION`

use infer::{Encoder, EncoderOptions, Model, Special};

const SENTENCES: [&str; 8] = [
    "The ferry leaves the old harbour at nine.",
    "Pears ripen in September.",
    "Bicycles travel free of charge, dogs do not.",
    "The lighthouse has two hundred and twelve steps.",
    "Tickets are sold on board, cash only.",
    "Rain is expected in the afternoon.",
    "The museum of clocks is closed on Mondays.",
    "A compiler turns source text into machine code.",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which model? `cargo xtask model minilm` prints the path of one")?;
    let question = arguments.next().unwrap_or_else(|| "When is the boat going?".to_owned());
    let model = infer::open(path)?;
    // As the model was trained, and of length 1: then the dot product of two vectors is their cosine.
    let mut encoder = model.encoder(&EncoderOptions::new())?;

    // What is searched is encoded once, all sentences in as few passes as they fit in. An index would keep these vectors.
    let sentences = encode(&*model, &mut *encoder, &SENTENCES)?;
    let asked = encode(&*model, &mut *encoder, &[&question])?;

    let mut found: Vec<(f32, &str)> =
        sentences.iter().zip(SENTENCES).map(|(sentence, text)| (dot(sentence, &asked[0]), text)).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    for (cosine, text) in found {
        println!("{cosine:.3}  {text}");
    }
    Ok(())
}

/// The vector of each text.
fn encode(model: &dyn Model, encoder: &mut dyn Encoder, texts: &[&str]) -> infer::Result<Vec<Vec<f32>>> {
    let mut tokens = vec![Vec::new(); texts.len()];
    for (text, tokens) in texts.iter().zip(&mut tokens) {
        model.tokenizer().encode(text, Special::ADD, tokens)?;
    }
    encoder.encode(&tokens.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let vectors = encoder.vectors();
    Ok((0..vectors.len()).filter_map(|text| vectors.vector(text)).map(<[f32]>::to_vec).collect())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
