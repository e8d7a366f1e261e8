//! Vectors are those of a small C program over the very same linked object, which does the work of llama.cpp's `llama-embedding`.

use infer::{EncoderOptions, Pooling, Special};
use kit::{peer::Embed, prompts};
use std::path::Path;

/// How far numbers of a vector of length 1 may lie apart, where passes are alike: from 64 tokens on the library adds up otherwise.
const NEAR: f32 = 1e-4;

#[test]
fn the_vectors_are_those_of_a_c_program() {
    let embed = Embed::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(|error| panic!("{error}"));
    let prompts = prompts::all();
    let short: Vec<String> = prompts[..18].iter().map(|text| text.chars().take(40).collect()).collect();
    let long: Vec<String> = prompts[..8].iter().map(|text| text.chars().take(200).collect()).collect();
    for (name, number, pooling, tokens, texts) in [
        // Many passes below 64 tokens, into which the texts are put in another order; and all in one.
        ("minilm", 1, Pooling::Mean, 60, &short[..]),
        ("minilm", 1, Pooling::Mean, 512, &long),
        ("minilm", 2, Pooling::Cls, 512, &long),
        // A decoder of this size is slow, and a few texts show what there is to see.
        ("smollm2", 3, Pooling::Last, 60, &short[..5]),
    ] {
        let path = build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"));
        let theirs = embed.run(&path, 1, tokens, number, texts).unwrap_or_else(|error| panic!("{error}"));

        let model = infer::open(&path).unwrap();
        let options =
            EncoderOptions::new().with_pooling(pooling).with_context(tokens).with_batch(tokens).with_threads(1);
        let mut encoder = model.encoder(&options).unwrap();
        let mut encoded = vec![Vec::new(); texts.len()];
        for (text, encoded) in texts.iter().zip(&mut encoded) {
            model.tokenizer().encode(text, Special::ADD, encoded).unwrap();
        }
        encoder.encode(&encoded.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
        for (index, theirs) in theirs.iter().enumerate() {
            let ours = encoder.vectors().vector(index).unwrap();
            assert_eq!(ours.len(), theirs.len());
            let apart = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart < NEAR, "{name} {pooling:?}, passes of {tokens}, text {index}: {apart}");
        }
    }
}
