//! SmolLM2 with weights of 4 bits beside onnxruntime-genai's generator in Python: the same folder, as many threads, the same tokens.
//!
//! Each side is a process, and both of them are there all the time: this one, and Python's twice. They take turns, and the best of their
//! rounds counts; beside it stands what comes of the best of each step, which is deaf to what interrupts a round. What is timed are the calls that compute: neither making a generator or a sequence, nor the way to the other process.

use crate::setting::onnx;
use infer::{
    Batch, OpenOptions, Sampling, Sequence, Session as _, SessionOptions, Special, Token, Tokenizer as _, Want,
};
use infer_benches::{
    Bar, Figure, Run,
    turns::{take, timed},
};
use infer_onnx::{Model, Session};
use kit::script::Script;
use serde::Deserialize;
use serde_json::json;
use std::{path::Path, time::Duration};

const OURS: usize = 0;
const THEIRS: usize = 1;
const THEIRS_AGAIN: usize = 2;

const FIXTURE: &str = "smollm2-onnx-int4";
const CONTEXT: usize = 1024;

/// How much is computed.
struct Load {
    threads: usize,
    rounds: usize,
    /// Tokens of the long prompt, whose prefill is timed.
    prompt: usize,
    /// Tokens that are decoded, one a step, after a short one.
    steps: usize,
}

const FULL: Load = Load { threads: 2, rounds: 5, prompt: 512, steps: 128 };
const QUICK: Load = Load { threads: 1, rounds: 1, prompt: 64, steps: 8 };
/// Tokens of the short prompt.
const SHORT: usize = 16;

pub(crate) fn measure(run: &mut Run) {
    let load = if run.quick() { QUICK } else { FULL };
    let path = build_support::fixtures::model(FIXTURE).unwrap_or_else(|error| panic!("{error}"));
    let mut sides = Sides::new(&path, load.threads);
    run.progress(&format!("prefill of {} tokens and {} steps, on {} threads", load.prompt, load.steps, load.threads));
    let prefill = sides.times(load.rounds, load.prompt, 1, |round| vec![round.prefill]);
    figures(run, "prefill", &prefill, load.prompt);
    let decode = sides.times(load.rounds, SHORT, load.steps + 1, |round| round.steps);
    figures(run, "decode", &decode, load.steps);
    copied(run, &mut sides, load.steps);
}

fn figures(run: &mut Run, name: &str, times: &[Rounds; 3], tokens: usize) {
    let whole = |who: usize| times[who].best();
    let best = whole(THEIRS).min(whole(THEIRS_AGAIN));
    run.timing(
        Figure::new(format!("onnx/{name}"), best / whole(OURS), "genai/ours")
            .with_bar(Bar::AtLeast(1.0))
            .with_against_itself(whole(THEIRS) / whole(THEIRS_AGAIN))
            .with_note(format!("best of {} rounds in turns", times[OURS].0.len())),
    );
    let by_step = |who: usize| times[who].best_by_step();
    run.timing(
        Figure::new(
            format!("onnx/{name}/by step"),
            by_step(THEIRS).min(by_step(THEIRS_AGAIN)) / by_step(OURS),
            "genai/ours",
        )
        .with_against_itself(by_step(THEIRS) / by_step(THEIRS_AGAIN))
        .with_note("the best of each step"),
    );
    let per_second = |seconds| tokens as f64 / seconds;
    let note = format!("genai {:.1}", per_second(best));
    run.timing(Figure::new(format!("onnx/{name}/rate"), per_second(whole(OURS)), "tokens/s").with_note(note));
}

/// How long each step took, round by round.
#[derive(Default)]
struct Rounds(Vec<Vec<Duration>>);

impl Rounds {
    /// The shortest round, in seconds.
    fn best(&self) -> f64 {
        let round = self.0.iter().map(|steps| steps.iter().sum::<Duration>()).min();
        round.expect("there are rounds").as_secs_f64()
    }

    /// All steps, in seconds, each as quick as it ever was: what it takes where nothing else comes between.
    fn best_by_step(&self) -> f64 {
        let steps = self.0.first().map_or(0, Vec::len);
        let best = |step: usize| self.0.iter().map(|round| round[step]).min().expect("there are rounds");
        (0..steps).map(best).sum::<Duration>().as_secs_f64()
    }
}

/// A text: its tokens, and how long the first took, and each one after it.
struct Round {
    tokens: Vec<Token>,
    prefill: Duration,
    steps: Vec<Duration>,
}

/// Keys and values stay where the runtime writes them.
fn copied(run: &mut Run, sides: &mut Sides, steps: usize) {
    let before = sides.session.kv_bytes_copied();
    let prompt = sides.text(SHORT);
    sides.ours(&prompt, steps + 1);
    let copied = sides.session.kv_bytes_copied() - before;
    let figure = Figure::new("onnx/decode/copied", copied as f64 / steps as f64, "bytes a step");
    run.figure(figure.with_bar(Bar::AtMost(0.0)).with_note("of keys and values, by this library"));
}

struct Sides {
    session: Session,
    words: Vec<Token>,
    batch: Batch,
    theirs: [Script; 2],
}

impl Sides {
    fn new(path: &Path, threads: usize) -> Self {
        let model = Model::open(&onnx(), path).unwrap_or_else(|error| panic!("{error}"));
        let options = SessionOptions::new().with_context(CONTEXT).with_batch(CONTEXT).with_threads(threads);
        let session = model.session(&options).unwrap_or_else(|error| panic!("{error}"));
        let mut words = Vec::new();
        model.tokenizer().encode(&kit::prompts::logbook(60), Special::NONE, &mut words).expect("a text encodes");
        let folder = path.to_str().expect("the cache's path is text").to_owned();
        let arguments = [folder, threads.to_string(), CONTEXT.to_string()];
        let theirs = [(); 2].map(|()| Script::start("genai.py", &arguments).unwrap_or_else(|error| panic!("{error}")));
        Self { session, words, batch: Batch::new(), theirs }
    }

    fn text(&self, count: usize) -> Vec<Token> {
        self.words[..count].to_vec()
    }

    /// How long `part` of a text takes, for all sides. They have to draw the same tokens.
    fn times(&mut self, rounds: usize, prompt: usize, count: usize, part: fn(Round) -> Vec<Duration>) -> [Rounds; 3] {
        let prompt = &*self.text(prompt);
        let wanted = self.ours(prompt, count).tokens;
        let mut times = <[Rounds; 3]>::default();
        // In the first one memory is touched that was not before.
        take::<3>(1 + rounds, |who, number| {
            let round = match who {
                OURS => self.ours(prompt, count),
                _ => self.theirs(who - THEIRS, prompt, count),
            };
            assert_eq!(round.tokens, wanted, "the sides drew other tokens");
            let steps = part(round);
            let all = steps.iter().sum();
            if number > 0 {
                times[who].0.push(steps);
            }
            all
        });
        times
    }

    fn ours(&mut self, prompt: &[Token], count: usize) -> Round {
        let seq = self.open();
        let (prefill, first) = timed(|| self.step(&seq, prompt));
        let (mut tokens, mut steps) = (vec![first], Vec::with_capacity(count));
        while tokens.len() < count {
            let (took, next) = timed(|| self.step(&seq, &tokens[tokens.len() - 1..]));
            tokens.push(next);
            steps.push(took);
        }
        Round { tokens, prefill, steps }
    }

    fn open(&mut self) -> Sequence {
        let seq = self.session.open(&OpenOptions::default()).expect("the only sequence");
        self.session.sample_with(&seq, &Sampling::greedy(), &[]).expect("greedy is in range");
        seq
    }

    fn step(&mut self, seq: &Sequence, tokens: &[Token]) -> Token {
        self.batch.clear();
        self.batch.push(seq, tokens, Want::Token);
        self.session.decode(&self.batch).unwrap_or_else(|error| panic!("{error}"));
        self.session.outputs().token(0).expect("it was wanted")
    }

    fn theirs(&mut self, which: usize, prompt: &[Token], count: usize) -> Round {
        let prompt: Vec<u32> = prompt.iter().map(|token| token.0).collect();
        let task = json!({ "prompt": prompt, "count": count }).to_string();
        let answer = self.theirs[which].ask(&task).unwrap_or_else(|error| panic!("{error}"));
        let answer: Answer = serde_json::from_str(&answer).expect("a line of JSON");
        Round {
            tokens: answer.tokens.into_iter().map(Token).collect(),
            prefill: Duration::from_secs_f64(answer.prefill),
            steps: answer.decode.into_iter().map(Duration::from_secs_f64).collect(),
        }
    }
}

/// What the other side says of a text.
#[derive(Deserialize)]
struct Answer {
    tokens: Vec<u32>,
    prefill: f64,
    decode: Vec<f64>,
}
