//! Semantic search: the sentences that are nearest to a question, by the vectors of an embedding model.
//!
//! `cargo run -p infer-examples --bin embed -- [--backend NAME] MODEL QUESTION`
//!
//! MODEL is a file for llama.cpp, or a folder for ONNX Runtime or MLX; what it is is seen, or said by its backend.

use infer::{Backend, Engine};

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
    let mut arguments = std::env::args().skip(1).peekable();
    let backend: Option<Backend> = match arguments.next_if_eq("--backend") {
        Some(_) => Some(arguments.next().ok_or("which backend? llama, onnx or mlx")?.parse()?),
        None => None,
    };
    let path = arguments.next().ok_or(
        "which model? `cargo xtask model minilm` prints the path of one, and so do `minilm-onnx` and `minilm-mlx`",
    )?;
    let question = arguments.next().unwrap_or_else(|| "When is the boat going?".to_owned());
    // Vectors are as the model was trained to make them, and of length 1: then the dot product of two is their cosine.
    let mut builder = Engine::builder(path);
    if let Some(backend) = backend {
        builder = builder.with_backend(backend);
    }
    let engine = builder.build()?;

    // What is searched is encoded once, all sentences in as few passes as they fit in. An index would keep these vectors. In a service, texts
    // of all who ask share passes.
    let sentences = engine.embed(SENTENCES);
    let asked = engine.embed([&question]).wait()?.remove(0);
    let sentences = sentences.wait()?;

    let mut found: Vec<(f32, &str)> =
        sentences.iter().zip(SENTENCES).map(|(sentence, text)| (dot(sentence, &asked), text)).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    for (cosine, text) in found {
        println!("{cosine:.3}  {text}");
    }
    Ok(())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
