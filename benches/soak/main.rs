//! Models loaded and let go, sequences opened, forked, cut and dropped, and requests made of engines and cancelled, again and again in one
//! process: nothing grows.
//!
//! What counts is taken after a warm-up, in which allocators and caches reach their size, and again at the end. Growth that every round
//! adds to is found so; a leak too small for the process's figures is LeakSanitizer's (`cargo xtask sanitize address`).

mod requests;

use infer_benches::{Run, growth::rounds};
use infer_core::{Batch, KvLayout, OpenOptions, Result, Sampling, Sequence, Session as _, Token, Want};
use infer_llama::{Llama, Model, ModelOptions, Session, SessionOptions};
use std::{path::Path, process::ExitCode};

/// Rounds of a whole run.
const LOADS: usize = 200;
const SEQUENCES: usize = 2000;

/// What may be added over all rounds, in bytes. A load takes 20 MB and more of the heap, so one that leaked would be seen at once.
const MOST_OF_LOADS: f64 = 4e6;
/// A sequence that kept what it was given for its tokens would add 4 kB a round, and its logits 200 kB.
const MOST_OF_SEQUENCES: f64 = 1e6;

/// The parts, by name.
const PARTS: [&str; 3] = ["loads", "sequences", "requests"];

fn main() -> ExitCode {
    let mut run = Run::of_parts(&PARTS);
    for part in PARTS.into_iter().filter(|part| run.wants(part)).collect::<Vec<_>>() {
        soak(&mut run, part).unwrap_or_else(|error| panic!("{error}"));
    }
    run.finish()
}

fn soak(run: &mut Run, part: &str) -> Result<()> {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let llama = Llama::linked()?;
    match part {
        "loads" => loads(run, &llama, &path),
        "sequences" => sequences(run, &llama, &path),
        _ => requests::scripted(run).and_then(|()| requests::on_model(run, &path)),
    }
}

fn loads(run: &mut Run, llama: &Llama, path: &Path) -> Result<()> {
    run.progress("models loaded, used and let go");
    let growth = rounds(run.quick(), LOADS, |_| {
        let model = Model::open_with(llama, path, &ModelOptions::new())?;
        let mut session = model.session(&options(1))?;
        let seq = session.open(&OpenOptions::default())?;
        pass(&mut session, &seq, &[Token(1)])
    })?;
    growth.tell(run, "soak/loads", MOST_OF_LOADS);
    Ok(())
}

fn sequences(run: &mut Run, llama: &Llama, path: &Path) -> Result<()> {
    run.progress("sequences opened, forked, cut and dropped");
    let model = Model::open(llama, path)?;
    let mut sessions = [KvLayout::Split, KvLayout::Unified]
        .map(|layout| model.session(&options(4).with_layout(layout)))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    let growth = rounds(run.quick(), SEQUENCES, |round| {
        let count = sessions.len();
        let session = &mut sessions[round % count];
        let seq = session.open(&OpenOptions::default())?;
        session.sample_with(&seq, &Sampling::default().with_seed(round as u64), &[])?;
        let prompt: Vec<Token> = (0..12).map(|at| Token((round * 31 + at * 7) as u32 % 40_000 + 100)).collect();
        pass(session, &seq, &prompt)?;
        let forks = [session.fork(&seq, 12)?, session.fork(&seq, 5)?];
        drop(seq);
        for fork in &forks {
            let next = [session.outputs().token(0).unwrap_or(Token(200))];
            pass(session, fork, &next)?;
        }
        session.truncate(&forks[0], 4)?;
        pass(session, &forks[0], &prompt[..2])
    })?;
    growth.tell(run, "soak/sequences", MOST_OF_SEQUENCES);
    Ok(())
}

/// Two threads, so that each session has a pool of its own to start and end.
fn options(sequences: usize) -> SessionOptions {
    SessionOptions::new().with_context(256).with_sequences(sequences).with_threads(2)
}

fn pass(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Result<()> {
    let mut batch = Batch::new();
    batch.push(seq, tokens, Want::Logits);
    session.decode(&batch)
}
