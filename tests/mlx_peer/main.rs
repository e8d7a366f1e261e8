//! What a model computes in MLX is what the same weights compute elsewhere: SmolLM2 in mlx-lm, llama.cpp and ONNX Runtime.

use build_support::fixtures;
use infer::{Special, Token, Tokenizer as _};
use infer_mlx::{Mlx, Model};
use infer_onnx::Onnx;
use kit::{
    greedy::{Agreement, Run, Settings},
    peer::Greedy,
    prompts,
    script::Script,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// One thread: tests run beside others.
const SETTINGS: Settings = Settings { threads: 1, context: 1024, count: 12 };
/// The same of everything: for `cargo test -- --ignored`.
const ALL: Settings = Settings { count: 48, ..SETTINGS };
/// How many prompts make a short run, and how many bytes of text each has at most.
const FEW: usize = 4;
const SHORT: usize = 100;
/// Two logits closer than this may change places where weights, keys and values have 32 bits on both sides.
const EPSILON: f32 = 0.01;
/// The same where one side is llama.cpp, which keeps keys and values in 16.
const EPSILON_OF_HALF: f32 = 0.05;

/// What mlx-lm draws after each of [`prompts::all`], as `mlx_lm_generate.py` says it: a line a prompt, with the tokens that it was given,
/// a bar, and [`ALL`] tokens that it drew, or fewer where it ended the text.
const OF_MLX_LM: &str = include_str!("greedy.txt");

fn fixture(name: &str) -> PathBuf {
    fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

fn open(name: &str) -> Model {
    let mlx = Mlx::load(&infer_mlx::LoadOptions::new());
    mlx.and_then(|mlx| Model::open(&mlx, fixture(name))).unwrap_or_else(|error| panic!("{error}"))
}

/// Those of a short run.
fn few() -> Vec<usize> {
    let all = prompts::all();
    (0..all.len()).filter(|&index| all[index].len() <= SHORT).take(FEW).collect()
}

/// What mlx-lm was given for a prompt, and what it drew after it.
fn written_down(index: usize) -> (Vec<u32>, Run) {
    let line = OF_MLX_LM.lines().nth(index).unwrap_or_else(|| panic!("there is no line for prompt {index}"));
    let (prompt, run) = line.split_once(" | ").unwrap_or_else(|| panic!("line {index} has no bar"));
    let prompt = prompt.split(' ').map(|id| id.parse().unwrap_or_else(|_| panic!("line {index}: {id:?} is no id")));
    (prompt.collect(), run.parse().unwrap_or_else(|why| panic!("line {index}: {why}")))
}

/// What mlx-lm draws after a prompt, cut to `count` tokens.
fn of_mlx_lm(index: usize, count: usize) -> Run {
    let (_, mut run) = written_down(index);
    run.tokens.truncate(count);
    run.gaps.truncate(count);
    run
}

/// The tokens of a prompt. Names of control tokens in it are text, as they are in [`infer::Request::text`].
fn encode(model: &Model, prompt: &str) -> Vec<u32> {
    let mut tokens: Vec<Token> = Vec::new();
    model.tokenizer().encode(prompt, Special::ADD, &mut tokens).unwrap();
    tokens.into_iter().map(|token| token.0).collect()
}

/// Two sides that are given other tokens draw others, and neither is wrong.
#[test]
fn mlx_lm_was_given_the_tokens_of_the_prompts() {
    let model = open("smollm2-mlx-4bit");
    for (index, prompt) in prompts::all().iter().enumerate() {
        assert_eq!(written_down(index).0, encode(&model, prompt), "{prompt:?}");
    }
}

#[test]
fn the_tokens_of_a_float_decoder_are_those_of_mlx_lm_llama_cpp_and_onnx_runtime() {
    like_the_others(SETTINGS, &few());
}

#[test]
#[ignore = "minutes: all prompts, and more tokens after each"]
fn the_tokens_of_a_float_decoder_are_those_of_the_others_for_long() {
    like_the_others(ALL, &(0..prompts::COUNT).collect::<Vec<_>>());
}

fn like_the_others(settings: Settings, which: &[usize]) {
    let (all, model) = (prompts::all(), open("smollm2-mlx"));
    let texts: Vec<&str> = which.iter().map(|&index| &*all[index]).collect();
    let mut session = settings.session(&model, settings.context);
    let ours: Vec<_> = texts.iter().map(|text| settings.generate(&model, &mut *session, text)).collect();
    assert!(ours.iter().all(|tokens| !tokens.is_empty()));

    let theirs: Vec<Run> = which.iter().map(|&index| of_mlx_lm(index, settings.count)).collect();
    agree("mlx-lm", &texts, &theirs, &ours, EPSILON);
    let onnx = Onnx::load(&infer_onnx::LoadOptions::new());
    let onnx = onnx.and_then(|onnx| infer_onnx::Model::open(&onnx, fixture("smollm2-onnx")));
    let onnx = onnx.unwrap_or_else(|error| panic!("{error}"));
    let mut session = settings.session(&onnx, settings.context);
    let of_onnx: Vec<_> = texts.iter().map(|text| settings.generate(&onnx, &mut *session, text)).collect();
    agree("ONNX Runtime", &texts, &theirs, &of_onnx, EPSILON);
    let greedy = Greedy::build(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap_or_else(|error| panic!("{error}"));
    let theirs = greedy.run(&fixture("smollm2-f32"), settings, &texts).unwrap_or_else(|error| panic!("{error}"));
    agree("llama.cpp", &texts, &theirs, &ours, EPSILON_OF_HALF);
}

/// The very blocks of the file that the floats are made of.
#[test]
fn the_tokens_of_a_quantised_decoder_are_those_of_its_weights_as_floats() {
    let (all, model, few) = (prompts::all(), open("smollm2-mlx-4bit"), few());
    let mut session = SETTINGS.session(&model, SETTINGS.context);
    let texts: Vec<&str> = few.iter().map(|&index| &*all[index]).collect();
    let ours: Vec<_> = texts.iter().map(|text| SETTINGS.generate(&model, &mut *session, text)).collect();
    let theirs: Vec<Run> = few.iter().map(|&index| of_mlx_lm(index, SETTINGS.count)).collect();
    agree("mlx-lm", &texts, &theirs, &ours, EPSILON);
}

/// All tokens up to a near-tie, and for most prompts all there are.
fn agree(who: &str, texts: &[&str], theirs: &[Run], ours: &[Vec<u32>], epsilon: f32) {
    assert!(theirs.len() == texts.len() && ours.len() == texts.len());
    let (mut equal, mut tokens) = (0, 0);
    for ((text, theirs), ours) in texts.iter().zip(theirs).zip(ours) {
        match theirs.agrees_with(ours, epsilon) {
            Ok(Agreement::Equal) => (equal, tokens) = (equal + 1, tokens + ours.len()),
            Ok(Agreement::UntilNearTie(at)) => {
                tokens += at;
                eprintln!("{who}, {text:?}: a near-tie of {} at {at}", theirs.gaps[at]);
            }
            Err(why) => panic!("{who}, {text:?}: {why}"),
        }
    }
    eprintln!("{who}: {equal} of {} texts are equal, and {tokens} tokens before a near-tie", texts.len());
    assert!(equal * 4 >= texts.len() * 3, "{who}: only {equal} of {} are equal", texts.len());
}

/// What is written down is what mlx-lm says today, on this machine.
#[test]
#[ignore = "minutes: all prompts by mlx-lm, which multiplies one number after the other"]
fn what_is_written_down_is_what_mlx_lm_draws() {
    let model = open("smollm2-mlx-4bit");
    let mut peer =
        Script::start("mlx_lm_generate.py", [fixture("smollm2-mlx")]).unwrap_or_else(|error| panic!("{error}"));
    let (mut lines, mut wrong) = (String::new(), Vec::new());
    for (index, text) in prompts::all().iter().enumerate() {
        let prompt = encode(&model, text);
        let task = json!({ "prompt": prompt, "count": ALL.count, "gaps": true });
        let answer: Value = peer.ask(&task.to_string()).map(|line| serde_json::from_str(&line).unwrap()).unwrap();
        let tokens: Vec<u32> = serde_json::from_value(answer["tokens"].clone()).unwrap();
        let gaps: Vec<f32> = serde_json::from_value(answer["gaps"].clone()).unwrap();
        let (given, drawn) = written_down(index);
        match drawn.agrees_with(&tokens, EPSILON) {
            _ if given != prompt => wrong.push(format!("{text:?}: other tokens were given")),
            Ok(_) => {}
            Err(why) => wrong.push(format!("{text:?}: {why}")),
        }
        let prompt: Vec<_> = prompt.iter().map(u32::to_string).collect();
        let drawn: Vec<_> = tokens.iter().zip(gaps).map(|(token, gap)| format!("{token}:{gap:.4}")).collect();
        lines += &format!("{} | {}\n", prompt.join(" "), drawn.join(" "));
    }
    assert!(wrong.is_empty(), "{wrong:#?}\ntests/mlx_peer/greedy.txt would be:\n{lines}");
}
