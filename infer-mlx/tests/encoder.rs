//! Encoders: all-MiniLM-L6-v2.

mod kit;

use build_support::fixtures;
use infer_core::{Encoder as _, EncoderOptions, Error, ErrorKind, Pooling, Token, Tokenizer as _};
use infer_mlx::{Encoder, Model};
use kit::mlx;
use std::fs;
use test_kit::Folder;

/// How far numbers may lie apart that were computed beside other texts.
const NEAR: f32 = 1e-5;

fn minilm() -> Model {
    Model::open(&mlx(), fixtures::model("minilm-mlx").expect("`cargo xtask setup` brings it")).unwrap()
}

fn options() -> EncoderOptions {
    EncoderOptions::new()
}

/// Texts of these lengths.
fn texts(lengths: &[u32]) -> Vec<Vec<Token>> {
    let text = |(place, &length): (usize, &u32)| {
        (0..length).map(|at| Token((place as u32 * 31 + at * at * 7) % 9000 + 2000)).collect()
    };
    lengths.iter().enumerate().map(text).collect()
}

/// The vectors of each text.
fn encode(encoder: &mut Encoder, texts: &[Vec<Token>]) -> Result<Vec<Vec<Vec<f32>>>, Error> {
    encoder.encode(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let vectors = encoder.vectors();
    Ok((0..vectors.len()).map(|text| vectors.tokens(text).map(<[f32]>::to_vec).collect()).collect())
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn texts_share_passes_and_come_out_in_their_own_order() {
    let model = minilm();
    let texts = texts(&[3, 40, 1, 8, 9, 3, 17, 40, 2]);
    for batch in [1, 24, 512] {
        let mut encoder = model.encoder(&options().with_batch(batch)).unwrap();
        let together = encode(&mut encoder, &texts).unwrap();
        for (text, vectors) in texts.iter().zip(&together) {
            let alone = encode(&mut encoder, std::slice::from_ref(text)).unwrap();
            let apart = apart(&alone[0][0], &vectors[0]);
            assert!(apart < NEAR, "passes of {batch} tokens, {} in the text: {apart}", text.len());
        }
        assert!(apart(&together[0][0], &together[5][0]) > 100.0 * NEAR, "other texts have other vectors");
        assert!(encode(&mut encoder, &[]).unwrap().is_empty());
    }
}

/// Each way of pooling against its formula, on the hidden states of all tokens.
#[test]
fn hidden_states_are_pooled_as_their_formulas_say() {
    let (model, texts) = (minilm(), texts(&[7, 2, 5]));
    let with = |pooling| {
        let options = options().with_pooling(pooling).with_normalize(false);
        encode(&mut model.encoder(&options).unwrap(), &texts).unwrap()
    };
    let hidden = with(Pooling::None);
    assert_eq!(hidden.iter().map(Vec::len).collect::<Vec<_>>(), [7, 2, 5]);
    let column = |states: &[Vec<f32>], at: usize| states.iter().map(|state| state[at]).collect::<Vec<_>>();
    for (text, states) in hidden.iter().enumerate() {
        let pooled = |pool: &dyn Fn(Vec<f32>) -> f32| -> Vec<f32> {
            (0..states[0].len()).map(|at| pool(column(states, at))).collect()
        };
        let mean = pooled(&|column| column.iter().sum::<f32>() / column.len() as f32);
        let most = pooled(&|column| column.into_iter().fold(f32::NEG_INFINITY, f32::max));
        for (pooling, wanted) in [
            (Pooling::Mean, &mean),
            (Pooling::Max, &most),
            (Pooling::Cls, &states[0]),
            (Pooling::Last, &states[states.len() - 1]),
        ] {
            let apart = apart(&with(pooling)[text][0], wanted);
            assert!(apart < NEAR, "{pooling:?} of text {text}: {apart}");
        }
    }
}

#[test]
fn an_encoder_says_what_it_gives_and_takes() {
    let model = minilm();
    let encoder = model.encoder(&options()).unwrap();
    let info = encoder.info();
    assert_eq!((info.pooling, info.width, info.context), (Pooling::Mean, 384, 256));
    assert!(info.normalized && model.package().is_encoder());
    let error = model.session(&Default::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("no decoder"), "{error}");
}

#[test]
fn what_cannot_be_encoded_is_refused_and_the_encoder_stays() {
    let model = minilm();
    for (options, kind) in [
        (options().with_pooling(Pooling::Rank), ErrorKind::Unsupported),
        (options().with_pooling(Pooling::Model), ErrorKind::Unsupported),
        (options().with_context(513), ErrorKind::InvalidInput),
        (options().with_batch(0), ErrorKind::InvalidInput),
        (options().with_threads(0), ErrorKind::InvalidInput),
    ] {
        assert_eq!(model.encoder(&options).unwrap_err().kind(), kind, "{options:?}");
    }
    let mut encoder = model.encoder(&options()).unwrap();
    let outside = Token(model.tokenizer().vocab().len() as u32);
    for wrong in [vec![], vec![Token(1); 257], vec![outside]] {
        let error = encode(&mut encoder, &[vec![Token(1)], wrong]).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains("text 1"), "{error}");
        assert!(encoder.vectors().is_empty());
    }
    assert_eq!(encoder.pair("a", "b", &mut Vec::new()).unwrap_err().kind(), ErrorKind::Unsupported);
    encoder.interrupt().raise();
    assert_eq!(encode(&mut encoder, &texts(&[3])).unwrap_err().kind(), ErrorKind::Cancelled);
    encoder.interrupt().lower();
    assert_eq!(encode(&mut encoder, &texts(&[3])).unwrap().len(), 1);
}

#[test]
fn an_encoder_leaves_no_arrays_behind() {
    let mlx = mlx();
    let model = Model::open(&mlx, fixtures::model("minilm-mlx").unwrap()).unwrap();
    let mut encoder = model.encoder(&options()).unwrap();
    let (live, texts) = (mlx.live(), texts(&[3, 40, 1]));
    encode(&mut encoder, &texts).unwrap();
    encoder.encode(&[&[]]).unwrap_err();
    assert_eq!(mlx.live(), live);
}

/// A row of weights would be looked for behind the last one.
#[test]
fn a_tokenizer_with_more_tokens_than_the_weights_have_rows_is_refused() {
    let folder = Folder::copy_of(fixtures::model("minilm-mlx").unwrap());
    let path = folder.path().join("tokenizer.json");
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    file["model"]["vocab"]["beyond"] = model_rows(&folder).into();
    fs::write(&path, file.to_string()).unwrap();
    let error = Model::open(&mlx(), folder.path()).and_then(|model| model.encoder(&options())).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidModel && error.to_string().contains("not of one model"), "{error}");
}

fn model_rows(folder: &Folder) -> u64 {
    let config: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("config.json")).unwrap()).unwrap();
    config["vocab_size"].as_u64().unwrap()
}
