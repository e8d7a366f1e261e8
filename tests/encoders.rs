//! Vectors and scores of one model's weights are the same on every runtime that has them.

use infer::{Encoder, EncoderOptions, Model, Pooling, Special, Token};
use infer_mlx::{LoadOptions, Mlx};
use kit::{prompts, script};

/// How far numbers of a vector of length 1 may lie apart, or scores. llama.cpp looks its GELU up in a table of 16 bits, and rounds keys and
/// values to as many; measured, it is 0.0008 apart.
const NEAR: f32 = 0.003;

fn open(name: &str) -> Box<dyn Model> {
    let path = build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"));
    infer::open(path).unwrap()
}

fn options() -> EncoderOptions {
    EncoderOptions::new().with_context(120).with_threads(1)
}

fn tokens(model: &dyn Model, texts: &[String]) -> Vec<Vec<Token>> {
    let encode = |text: &String| {
        let mut tokens = Vec::new();
        model.tokenizer().encode(text, Special::ADD, &mut tokens).unwrap();
        tokens
    };
    texts.iter().map(encode).collect()
}

fn encode(encoder: &mut dyn Encoder, texts: &[Vec<Token>]) -> Vec<Vec<f32>> {
    encoder.encode(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    let vectors = encoder.vectors();
    (0..texts.len()).map(|text| vectors.vector(text).unwrap().to_vec()).collect()
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The vectors of some texts by both, pooling by pooling.
fn compare(llama: &str, onnx: &str, near: f32, texts: &[String]) {
    let [llama, onnx] = [llama, onnx].map(open);
    let encoded = tokens(&*llama, texts);
    assert_eq!(encoded, tokens(&*onnx, texts), "both read one vocabulary");
    for pooling in [Pooling::Mean, Pooling::Cls, Pooling::Last] {
        let [llama, onnx] = [&llama, &onnx].map(|model| {
            let mut encoder = model.encoder(&options().with_pooling(pooling)).unwrap();
            encode(&mut *encoder, &encoded)
        });
        for (index, (llama, onnx)) in llama.iter().zip(&onnx).enumerate() {
            assert!(apart(llama, onnx) < near, "{pooling:?}, text {index}: {}", apart(llama, onnx));
        }
    }
}

/// All of it in 32 bits, by the model's files and formulas in NumPy.
#[test]
fn minilm_on_mlx_gives_the_vectors_of_its_formulas() {
    let texts: Vec<String> = prompts::all()[..12].iter().map(|text| text.chars().take(200).collect()).collect();
    let theirs = script::minilm_vectors(&texts).unwrap_or_else(|error| panic!("{error}"));
    let mlx = Mlx::load(&LoadOptions::new()).unwrap();
    let path = build_support::fixtures::model("minilm-mlx").unwrap_or_else(|error| panic!("{error}"));
    let model = infer_mlx::Model::open(&mlx, path).unwrap();
    let encoded = tokens(&model, &texts);
    let ours = encode(&mut model.encoder(&EncoderOptions::new()).unwrap(), &encoded);
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert!(apart(ours, theirs) < 1e-4, "text {index}: {}", apart(ours, theirs));
    }
}

#[test]
fn minilm_is_the_same_on_llama_cpp_and_onnx_runtime() {
    let texts: Vec<String> = prompts::all()[..18].iter().map(|text| text.chars().take(300).collect()).collect();
    compare("minilm", "minilm-onnx", NEAR, &texts);
}

#[test]
fn a_small_encoder_is_the_same_on_llama_cpp_and_onnx_runtime() {
    let texts = ["one", "two or three words", "a b c d e f g h"].map(str::to_owned);
    compare("tiny-bert", "tiny-onnx-encoder", NEAR, &texts);
}

#[test]
fn a_classifier_scores_the_same_on_llama_cpp_and_onnx_runtime() {
    let [llama, onnx] = ["tiny-rank", "tiny-onnx-classifier"].map(open);
    let texts = ["one", "two or three words", "a b c d e f g h"].map(str::to_owned);
    let texts = tokens(&*onnx, &texts);
    let mut encoders = [&llama, &onnx].map(|model| model.encoder(&options()).unwrap());
    assert_eq!(encoders[0].info().labels, encoders[1].info().labels);
    let [llama, onnx] = encoders.each_mut().map(|encoder| encode(&mut **encoder, &texts));
    for (index, (llama, onnx)) in llama.iter().zip(&onnx).enumerate() {
        assert!(apart(llama, onnx) < NEAR, "text {index}: {llama:?} {onnx:?}");
    }
}
