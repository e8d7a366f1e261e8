//! The tiny models of the tests: they are what they say, and compute.

use infer_core::{Batch, ErrorKind, OpenOptions, Result, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{
    Llama, Model, SessionOptions,
    gguf::{self, Purpose},
};

const DECODERS: [&str; 4] = ["tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"];
const ENCODERS: [&str; 2] = ["tiny-bert", "tiny-rank"];

fn open(name: &str) -> Model {
    let path = build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"));
    gguf::open(&path).and_then(|header| header.check(Purpose::Model)).unwrap_or_else(|error| panic!("{error}"));
    Model::open(&Llama::linked().unwrap(), path).unwrap_or_else(|error| panic!("{error}"))
}

/// The logits after each of the tokens.
fn logits(model: &Model, tokens: &[Token]) -> Result<Vec<Vec<f32>>> {
    let mut session = model.session(&SessionOptions::new().with_context(256).with_threads(1))?;
    let seq = session.open(&OpenOptions::default())?;
    let mut batch = Batch::new();
    let row = |token: &Token| {
        batch.clear();
        batch.push(&seq, &[*token], Want::Logits);
        session.decode(&batch)?;
        Ok(session.outputs().logits(0).expect("logits were wanted").to_vec())
    };
    tokens.iter().map(row).collect()
}

#[test]
fn decoders_tell_texts_apart_and_have_a_favourite() {
    for name in DECODERS {
        let model = open(name);
        let mut tokens = Vec::new();
        let text = "A tiny model has nothing to say, and says it at length.";
        model.tokenizer().encode(text, Special::ADD, &mut tokens).unwrap();
        assert_eq!(model.tokenizer().vocab().len() as u64, build_support::tiny::VOCAB);
        assert_eq!(tokens.len(), text.len());

        let rows = logits(&model, &tokens).unwrap();
        let mut gaps: Vec<f32> = rows.iter().map(|row| gap(row)).collect();
        gaps.sort_by(f32::total_cmp);
        let favourites: std::collections::HashSet<usize> = rows.iter().map(|row| order(row)[0]).collect();
        assert!(rows.iter().flatten().all(|logit| logit.is_finite() && logit.abs() < 30.0), "{name}");
        assert!(gaps[gaps.len() / 2] > 0.2, "{name}: {gaps:?}");
        assert!(favourites.len() > rows.len() / 3, "{name}: {} of {}", favourites.len(), rows.len());

        // Another first token is seen at the end: 20 tokens on, which is within every window and memory.
        let mut other = tokens[..20].to_vec();
        other[0] = Token(7);
        let other = logits(&model, &other).unwrap();
        let apart = apart(&rows[19], &other[19]);
        assert!(apart > 0.02, "{name}: {apart}");
    }
}

#[test]
fn encoders_open_and_have_no_session() {
    for name in ENCODERS {
        let model = open(name);
        let mut tokens = Vec::new();
        model.tokenizer().encode("The cat sat, unrest!", Special::ADD, &mut tokens).unwrap();
        let vocab = model.tokenizer().vocab();
        let pieces: Vec<_> = tokens.iter().map(|&token| str::from_utf8(vocab.bytes(token).unwrap()).unwrap()).collect();
        assert_eq!(pieces, ["[CLS]", " the", " cat", " sat", " ,", " un", "re", "s", "t", " !", "[SEP]"], "{name}");
        assert_eq!(model.session(&SessionOptions::new()).unwrap_err().kind(), ErrorKind::Unsupported, "{name}");
    }
}

#[test]
fn adapters_are_no_models() {
    for name in ["tiny-lora", "tiny-lora-other"] {
        let path = build_support::fixtures::model(name).unwrap();
        let error = Model::open(&Llama::linked().unwrap(), path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
    }
}

fn order(row: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
    order
}

fn gap(row: &[f32]) -> f32 {
    let order = order(row);
    row[order[0]] - row[order[1]]
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}
