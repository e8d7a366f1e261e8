//! Models loaded and let go, and sequences opened, forked, cut and dropped, again and again in one process: nothing grows.
//!
//! What counts is taken after a warm-up, in which allocators and caches reach their size, and again at the end. Growth that every round
//! adds to is found so; a leak too small for the process's figures is LeakSanitizer's (`cargo xtask sanitize address`).

use infer_benches::{Bar, Figure, Run, memory};
use infer_core::{Batch, KvLayout, OpenOptions, Result, Sampling, Sequence, Session as _, Token, Want};
use infer_llama::{Llama, Model, ModelOptions, Session, SessionOptions};
use std::{
    fs,
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

/// Rounds of a whole run.
const LOADS: usize = 200;
const SEQUENCES: usize = 2000;
/// How long each part of a quick run takes.
const QUICK: Duration = Duration::from_secs(20);
/// One round in so many warms up.
const WARM: usize = 10;

/// What may be added over all rounds, in bytes. A load takes 20 MB and more of the heap, so one that leaked would be seen at once.
const MOST_OF_LOADS: f64 = 4e6;
/// A sequence that kept what it was given for its tokens would add 4 kB a round, and its logits 200 kB.
const MOST_OF_SEQUENCES: f64 = 1e6;
/// Memory that an allocator takes or splits by the way.
const MOST_MAPPINGS: f64 = 8.0;

fn main() -> ExitCode {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let llama = Llama::linked().unwrap_or_else(|error| panic!("{error}"));
    let mut run = Run::from_args();
    loads(&mut run, &llama, &path).unwrap_or_else(|error| panic!("{error}"));
    sequences(&mut run, &llama, &path).unwrap_or_else(|error| panic!("{error}"));
    run.finish()
}

fn loads(run: &mut Run, llama: &Llama, path: &Path) -> Result<()> {
    run.progress("models loaded, used and let go");
    let growth = rounds(run.quick(), LOADS, |_| {
        let model = Model::open_with(llama, path, &ModelOptions::new())?;
        let mut session = model.session(&options(1))?;
        let seq = session.open(&OpenOptions::default())?;
        pass(&mut session, &seq, &[Token(1)])
    })?;
    growth.tell(run, "loads", MOST_OF_LOADS);
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
    growth.tell(run, "sequences", MOST_OF_SEQUENCES);
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

/// Runs all rounds, or as many as a quick run has time for.
fn rounds(quick: bool, most: usize, mut round: impl FnMut(usize) -> Result<()>) -> Result<Growth> {
    let (begin, limit) = (Instant::now(), if quick { QUICK } else { Duration::MAX });
    let mut warm = None;
    let mut done = 0;
    while done < most && (begin.elapsed() < limit || done < 2 * WARM) {
        round(done)?;
        done += 1;
        let share = begin.elapsed().as_secs_f64() / limit.as_secs_f64();
        if warm.is_none() && done >= WARM && (done * WARM >= most || share * WARM as f64 >= 1.0) {
            warm = Some((done, Held::now()));
        }
    }
    let (warm_up, before) = warm.expect("there are more rounds than warm up");
    Ok(Growth { warm_up, measured: done - warm_up, before, after: Held::now() })
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    anonymous: u64,
    files: usize,
    threads: usize,
    mappings: usize,
}

impl Held {
    fn now() -> Self {
        let count = |folder: &str| fs::read_dir(folder).map_or(0, Iterator::count);
        Self {
            anonymous: memory::anonymous().unwrap_or_else(|error| panic!("{error}")),
            files: count("/proc/self/fd"),
            threads: count("/proc/self/task"),
            mappings: fs::read_to_string("/proc/self/maps").map_or(0, |maps| maps.lines().count()),
        }
    }
}

/// What so many rounds added.
struct Growth {
    warm_up: usize,
    measured: usize,
    before: Held,
    after: Held,
}

impl Growth {
    fn tell(&self, run: &mut Run, what: &str, most: f64) {
        let Self { warm_up, measured, before, after } = self;
        let note = format!("{measured} rounds after {warm_up} that warm up");
        let grown = |after: usize, before: usize| after as f64 - before as f64;
        let bytes = after.anonymous as f64 - before.anonymous as f64;
        let of_memory = format!("{note}; {:.1} MB were held before", before.anonymous as f64 / 1e6);
        let figures = [
            Figure::new(format!("soak/{what}/anonymous"), bytes, "B").with_bar(Bar::AtMost(most)).with_note(of_memory),
            Figure::new(format!("soak/{what}/files"), grown(after.files, before.files), "").with_bar(Bar::AtMost(0.0)),
            Figure::new(format!("soak/{what}/threads"), grown(after.threads, before.threads), "")
                .with_bar(Bar::AtMost(0.0)),
            Figure::new(format!("soak/{what}/mappings"), grown(after.mappings, before.mappings), "")
                .with_bar(Bar::AtMost(MOST_MAPPINGS)),
        ];
        for figure in figures {
            run.figure(figure);
        }
    }
}
