//! What a model computes in ONNX Runtime is what the same weights compute elsewhere: SmolLM2 in llama.cpp and in onnxruntime-genai,
//! all-MiniLM-L6-v2 in NumPy.

use build_support::fixtures;
use infer::{Encoder as _, EncoderOptions, Special, Token, Tokenizer as _};
use infer_onnx::{LoadOptions, Model, Onnx};
use kit::{
    greedy::{Agreement, Settings},
    peer::Greedy,
    prompts, script,
    script::Script,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One thread: tests run beside others.
const SETTINGS: Settings = Settings { threads: 1, context: 1024, count: 12 };
/// The same of everything: for `cargo test -- --ignored`.
const ALL: Settings = Settings { count: 48, ..SETTINGS };
/// How many prompts make a short run.
const FEW: usize = 4;
/// Two logits closer than this may change places: weights are of 32 bits on both sides, but llama.cpp keeps keys and values in 16.
const EPSILON: f32 = 0.05;
/// How far numbers of a vector of length 1 may lie apart.
const NEAR: f32 = 1e-4;

fn fixture(name: &str) -> PathBuf {
    fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

fn open(name: &str) -> Model {
    let onnx = Onnx::load(&LoadOptions::new());
    onnx.and_then(|onnx| Model::open(&onnx, fixture(name))).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_tokens_of_a_float_decoder_are_those_of_llama_cpp() {
    like_llama_cpp(SETTINGS, FEW);
}

#[test]
#[ignore = "minutes: all prompts, and more tokens after each"]
fn the_tokens_of_a_float_decoder_are_those_of_llama_cpp_for_long() {
    like_llama_cpp(ALL, prompts::COUNT);
}

fn like_llama_cpp(settings: Settings, count: usize) {
    let prompts = &prompts::all()[..count];
    let greedy = Greedy::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(|error| panic!("{error}"));
    let runs = greedy.run(&fixture("smollm2-f32"), settings, prompts).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(runs.len(), count);
    // A folder for onnxruntime-genai, and an export with attention in plain operators.
    for name in ["smollm2-onnx", "smollm2-onnx-plain"] {
        let model = open(name);
        let mut session = settings.session(&model, settings.context);
        let mut equal = 0;
        for (prompt, run) in prompts.iter().zip(&runs) {
            let tokens = settings.generate(&model, &mut *session, prompt);
            assert!(!tokens.is_empty());
            match run.agrees_with(&tokens, EPSILON) {
                Ok(Agreement::Equal) => equal += 1,
                Ok(Agreement::UntilNearTie(at)) => eprintln!("{name}, {prompt:?}: a near-tie at {at}"),
                Err(why) => panic!("{name}, {prompt:?}: {why}"),
            }
        }
        assert!(equal * 4 >= count * 3, "{name}: only {equal} of {count} are equal");
    }
}

#[test]
fn the_tokens_of_a_quantised_decoder_are_those_of_onnxruntime_genai() {
    like_genai(SETTINGS, FEW);
}

#[test]
#[ignore = "minutes: all prompts, and more tokens after each"]
fn the_tokens_of_a_quantised_decoder_are_those_of_onnxruntime_genai_for_long() {
    like_genai(ALL, prompts::COUNT);
}

/// The very same passes in the very same runtime: the very same tokens.
fn like_genai(settings: Settings, count: usize) {
    let folder = fixture("smollm2-onnx-int4");
    let model = open("smollm2-onnx-int4");
    let mut session = settings.session(&model, settings.context);
    let numbers = [settings.threads, settings.context].map(|number| number.to_string());
    let arguments = [folder.to_str().unwrap(), &numbers[0], &numbers[1]];
    let mut genai = Script::start("genai.py", arguments).unwrap_or_else(|error| panic!("{error}"));
    for prompt in &prompts::all()[..count] {
        let ours = settings.generate(&model, &mut *session, prompt);
        let task = json!({ "prompt": encode(&model, prompt), "count": settings.count });
        let answer: Value = genai.ask(&task.to_string()).map(|line| serde_json::from_str(&line).unwrap()).unwrap();
        let theirs: Vec<u32> = serde_json::from_value(answer["tokens"].clone()).unwrap();
        assert_eq!(ours, theirs, "{prompt:?}");
    }
}

fn encode(model: &Model, text: &str) -> Vec<u32> {
    let mut tokens: Vec<Token> = Vec::new();
    model.tokenizer().encode(text, Special::ADD, &mut tokens).unwrap();
    tokens.into_iter().map(|token| token.0).collect()
}

#[test]
fn the_vectors_of_an_encoder_are_those_of_its_formulas() {
    let texts: Vec<String> = prompts::all()[..12].iter().map(|text| text.chars().take(200).collect()).collect();
    let theirs = script::minilm_vectors(&texts).unwrap_or_else(|error| panic!("{error}"));
    let model = open("minilm-onnx");
    let mut encoder = model.encoder(&EncoderOptions::new().with_threads(1)).unwrap();
    let mut encoded = vec![Vec::new(); texts.len()];
    for (text, encoded) in texts.iter().zip(&mut encoded) {
        model.tokenizer().encode(text, Special::ADD, encoded).unwrap();
    }
    encoder.encode(&encoded.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    for (index, theirs) in theirs.iter().enumerate() {
        let ours = encoder.vectors().vector(index).unwrap();
        assert_eq!(ours.len(), theirs.len());
        let apart = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < NEAR, "{:?}: {apart}", texts[index]);
    }
}
