//! all-MiniLM-L6-v2 on a thousand sentences beside Python, as people run it there: `tokenizers`, `onnxruntime`, NumPy. Both sides tokenise, put
//! the texts in the order of their lengths, and fill batches by the same rule.
//!
//! Each side is a process, Python's is there twice, and they take turns.

use crate::setting::onnx;
use infer::{Encoder as _, EncoderOptions, Special, Token, Tokenizer as _};
use infer_benches::{
    Bar, Figure, Run,
    turns::{take, timed},
};
use infer_onnx::{Encoder, Model};
use kit::{prompts, script::Script};
use serde_json::json;
use std::{thread, time::Duration};

const OURS: usize = 0;
const THEIRS: usize = 1;
const THEIRS_AGAIN: usize = 2;

const SENTENCES: usize = 1_000;
const FEW: usize = 40;
/// Tokens of a pass, with those that only fill it.
const BATCH: usize = 512;
/// How far numbers of a vector of length 1 may lie apart.
const NEAR: f32 = 1e-4;

pub(crate) fn measure(run: &mut Run) {
    let (threads, count, rounds) = if run.quick() { (1, FEW, 1) } else { (2, SENTENCES, 5) };
    let texts = sentences(count);
    let path = build_support::fixtures::model("minilm-onnx").unwrap_or_else(|error| panic!("{error}"));
    let mut ours = Ours::new(Model::open(&onnx(), &path).unwrap_or_else(|error| panic!("{error}")), threads);
    let numbers = [threads, BATCH, ours.encoder.info().texts].map(|number| number.to_string());
    let arguments = [&[path.to_str().expect("the cache's path is text").to_owned()], &numbers[..]].concat();
    let mut theirs = [(); 2].map(|()| Theirs::start(&arguments, &texts));

    run.progress(&format!("{count} sentences, {rounds} rounds"));
    ours.encode(&texts);
    let apart = theirs.iter().map(|theirs| ours.apart(&theirs.vectors)).fold(0.0, f32::max);
    assert!(apart < NEAR, "the sides made other vectors: {apart}");
    let times = take::<3>(rounds, |who, _| match who {
        OURS => timed(|| ours.encode(&texts)).0,
        _ => theirs[who - THEIRS].round(),
    });
    let best = times.best(THEIRS).min(times.best(THEIRS_AGAIN));
    let figure = Figure::new("onnx/encode", best / times.best(OURS), "python/ours")
        .with_bar(Bar::AtLeast(1.1))
        .with_against_itself(times.best(THEIRS) / times.best(THEIRS_AGAIN))
        .with_note(format!("best of {rounds} rounds in turns; vectors within {apart:.1e}"));
    run.timing(figure);
    let rate = |seconds| count as f64 / seconds;
    let figure = Figure::new("onnx/encode/rate", rate(times.best(OURS)), "sentences/s");
    run.timing(figure.with_note(format!("Python {:.0}", rate(best))));
}

/// The lines of a logbook and what was written around them: short and long ones, as they come.
fn sentences(count: usize) -> Vec<String> {
    let log = prompts::logbook(count);
    let days: Vec<&str> = log.lines().take(count).collect();
    let texts = days.iter().enumerate().map(|(day, line)| match day % 4 {
        0 => days[day..(day + 3).min(days.len())].join(" "),
        1 => line.split(';').next().unwrap_or(line).to_owned(),
        _ => (*line).to_owned(),
    });
    texts.collect()
}

struct Ours {
    model: Model,
    encoder: Encoder,
    threads: usize,
}

impl Ours {
    fn new(model: Model, threads: usize) -> Self {
        let options = EncoderOptions::new().with_batch(BATCH).with_threads(threads);
        let encoder = model.encoder(&options).unwrap_or_else(|error| panic!("{error}"));
        Self { model, encoder, threads }
    }

    fn encode(&mut self, texts: &[String]) {
        let tokens = self.tokens(texts);
        let tokens: Vec<&[Token]> = tokens.iter().map(Vec::as_slice).collect();
        self.encoder.encode(&tokens).unwrap_or_else(|error| panic!("{error}"));
    }

    /// On as many threads as the encoder has: `encode_batch`, which the other side calls, divides the texts among threads too.
    fn tokens(&self, texts: &[String]) -> Vec<Vec<Token>> {
        let tokenizer = self.model.tokenizer();
        let tokens_of = &|text: &String| {
            let mut tokens = Vec::new();
            tokenizer.encode(text, Special::ADD, &mut tokens).expect("a text encodes");
            tokens
        };
        let mut parts = texts.chunks(texts.len().div_ceil(self.threads).max(1));
        let own = parts.next().unwrap_or_default();
        thread::scope(|scope| {
            let others: Vec<_> = parts.map(|part| scope.spawn(move || part.iter().map(tokens_of).collect())).collect();
            let mut tokens: Vec<Vec<Token>> = own.iter().map(tokens_of).collect();
            for other in others {
                tokens.append(&mut other.join().expect("texts encode"));
            }
            tokens
        })
    }

    /// The largest difference between our numbers and theirs.
    fn apart(&self, theirs: &[Vec<f32>]) -> f32 {
        let vectors = self.encoder.vectors();
        let apart = theirs.iter().enumerate().flat_map(|(index, theirs)| {
            let ours = vectors.vector(index).expect("each text has a vector");
            assert_eq!(ours.len(), theirs.len());
            ours.iter().zip(theirs).map(|(a, b)| (a - b).abs())
        });
        apart.fold(0.0, f32::max)
    }
}

struct Theirs {
    script: Script,
    vectors: Vec<Vec<f32>>,
}

impl Theirs {
    fn start(arguments: &[String], texts: &[String]) -> Self {
        let mut script = Script::start("minilm_encode.py", arguments).unwrap_or_else(|error| panic!("{error}"));
        let vectors = script.ask(&json!(texts).to_string()).unwrap_or_else(|error| panic!("{error}"));
        Self { script, vectors: serde_json::from_str(&vectors).expect("a list of vectors") }
    }

    /// All texts again: how long it took.
    fn round(&mut self) -> Duration {
        let seconds = self.script.ask("").unwrap_or_else(|error| panic!("{error}"));
        Duration::from_secs_f64(seconds.trim().parse().expect("a number of seconds"))
    }
}
