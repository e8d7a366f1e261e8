//! Tokens that are drawn in the graph beside the same ones drawn on the host, on the processor: there the graph's draw has no row to
//! save the way, so this is what it costs, not what it is for.

use infer_benches::{
    Figure, Run,
    turns::{take, timed},
};
use infer_core::{Batch, OpenOptions, Sampling, Sequence, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{Llama, Model, Session, SessionOptions};
use kit::prompts;
use std::{process::ExitCode, time::Duration};

const HOST: usize = 0;
const DEVICE: usize = 1;

const CONTEXT: usize = 1024;
/// Positions there are before the first measured step.
const PROMPT: usize = 128;
/// Steps before the measured ones.
const WARM: usize = 6;

fn main() -> ExitCode {
    let mut run = Run::from_args();
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let opened = Llama::linked().and_then(|llama| Model::open(&llama, path));
    let model = opened.unwrap_or_else(|error| panic!("{error}"));
    let mut text = Vec::new();
    model.tokenizer().encode(&prompts::logbook(20), Special::ADD, &mut text).expect("a prompt encodes");
    let warm = Sampling::default().with_temperature(0.8).with_seed(1);
    compare(&mut run, &model, &text[..PROMPT], "draws/greedy", &Sampling::greedy());
    compare(&mut run, &model, &text[..PROMPT], "draws/temperature", &warm);
    compare(&mut run, &model, &text[..PROMPT], "draws/top-k", &warm.with_top_k(40));
    run.finish()
}

fn compare(run: &mut Run, model: &Model, prompt: &[Token], name: &'static str, sampling: &Sampling) {
    let rounds = if run.quick() { 60 } else { 600 };
    run.progress(&format!("{name}: {rounds} rounds of one token"));
    let mut sides = [false, true].map(|device| Side::new(model, device, sampling, prompt));
    // Both are fed what the host draws: on the very edge between two tokens they may differ.
    let mut last = sides[HOST].step(prompt).1;
    sides[DEVICE].step(prompt);
    let (mut same, mut all) = (0, 0);
    let mut measure = |rounds| {
        let mut drawn = [last; 2];
        let mut fed = (usize::MAX, last);
        take::<2>(rounds, |who, round| {
            if fed.0 != round {
                fed = (round, drawn[HOST]);
            }
            let (took, next) = sides[who].step(&[fed.1]);
            drawn[who] = next;
            last = drawn[HOST];
            took
        })
    };
    measure(WARM);
    let times = measure(rounds);
    for _ in 0..32 {
        let [host, device] = [HOST, DEVICE].map(|who| sides[who].step(&[last]).1);
        (same, all, last) = (same + usize::from(host == device), all + 1, host);
    }
    let note = format!(
        "means: host {:.3} ms, in the graph {:.3} ms; {same} of {all} tokens are the same",
        times.mean(HOST) * 1e3,
        times.mean(DEVICE) * 1e3
    );
    run.timing(Figure::new(name, times.mean(HOST) / times.mean(DEVICE), "host/graph").with_note(note));
}

struct Side {
    session: Session,
    sequence: Sequence,
    batch: Batch,
}

impl Side {
    fn new(model: &Model, device: bool, sampling: &Sampling, prompt: &[Token]) -> Self {
        let options = SessionOptions::new().with_context(CONTEXT).with_device_sampling(device);
        let mut session = model.session(&options).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(session.capabilities().device_sampling, device);
        let sequence = session.open(&OpenOptions::default()).expect("the first sequence");
        session.sample_with(&sequence, sampling, prompt).expect("it is in range");
        Self { session, sequence, batch: Batch::new() }
    }

    fn step(&mut self, tokens: &[Token]) -> (Duration, Token) {
        timed(|| {
            self.batch.clear();
            let entry = self.batch.push(&self.sequence, tokens, Want::Token);
            self.session.decode(&self.batch).unwrap_or_else(|error| panic!("{error}"));
            self.session.outputs().token(entry).expect("a token was wanted")
        })
    }
}
