//! Eight threads on one engine, which ask, read, cancel and drop at random: nothing fails, whichever thread asks.

use crate::setting::folder;
use infer::{Engine, FinishReason, Generation, Request, Result, Sampling, Token};
use infer_benches::{Bar, Figure, Random, Run};
use infer_mlx::{LoadOptions, Mlx, Model};
use std::{
    thread,
    time::{Duration, Instant},
};

const THREADS: u64 = 8;
const FIXTURE: &str = "tiny-mlx-llama";
const FULL: Duration = Duration::from_secs(300);
const QUICK: Duration = Duration::from_secs(20);
/// Tokens of a prompt, and of a text, at most.
const LENGTH: u64 = 24;
/// Tokens of a text that is to be cancelled: too many for it to end before.
const LONG: usize = 64;
/// Ids of tokens are below this.
const VOCAB: u64 = 256;

/// What became of a thread's texts.
#[derive(Clone, Debug, Default)]
struct Tally {
    finished: usize,
    cancelled: usize,
    failed: Vec<String>,
}

pub(crate) fn measure(run: &mut Run) {
    let time = if run.quick() { QUICK } else { FULL };
    run.progress(&format!("{THREADS} threads on one engine for {} s", time.as_secs()));
    // On the engine's own thread, where it stays.
    let open =
        || Ok(Box::new(Model::open(&Mlx::load(&LoadOptions::new())?, folder(FIXTURE))?) as Box<dyn infer::Model>);
    let engine = Engine::builder_with(open).with_sequences(4).with_context(128);
    let engine = engine.build().unwrap_or_else(|error| panic!("{error}"));
    let end = Instant::now() + time;
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                scope.spawn({
                    let engine = &engine;
                    move || hammer(engine, seed, end)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread does not panic")).collect()
    });
    let sum = |count: fn(&Tally) -> usize| tallies.iter().map(count).sum::<usize>();
    let failed: Vec<&String> = tallies.iter().flat_map(|tally| &tally.failed).collect();
    let note = format!("{} finished, {} cancelled{}", sum(|t| t.finished), sum(|t| t.cancelled), first(&failed));
    run.figure(
        Figure::new("mlx/hammer", failed.len() as f64, "texts failed").with_bar(Bar::AtMost(0.0)).with_note(note),
    );
}

fn first(failed: &[&String]) -> String {
    failed.first().map(|why| format!("; the first failure: {why}")).unwrap_or_default()
}

fn hammer(engine: &Engine, seed: u64, end: Instant) -> Tally {
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    while Instant::now() < end {
        let (request, cancel) = (request(&mut random), random.below(3) == 0);
        let mut generation = engine.generate(if cancel { request.with_max_tokens(LONG) } else { request });
        if cancel {
            for _ in 0..random.below(4) {
                if let Some(Err(error)) = generation.wait() {
                    tally.failed.push(error.to_string());
                }
            }
            // Half of them are dropped without a word.
            if random.below(2) == 0 {
                tally.cancelled += 1;
                continue;
            }
            generation.cancel();
        }
        match read(generation) {
            Ok(Some(FinishReason::Cancelled)) if cancel => tally.cancelled += 1,
            Ok(Some(FinishReason::Length)) => tally.finished += 1,
            Ok(other) => tally.failed.push(format!("it ended by {other:?}")),
            Err(error) => tally.failed.push(error.to_string()),
        }
    }
    tally
}

fn read(generation: Generation) -> Result<Option<FinishReason>> {
    let mut reason = None;
    for piece in generation {
        reason = piece?.finish.map(|finish| finish.reason).or(reason);
    }
    Ok(reason)
}

fn request(random: &mut Random) -> Request {
    let length = 1 + random.below(LENGTH);
    let prompt: Vec<Token> = (0..length).map(|_| Token(random.below(VOCAB) as u32)).collect();
    let sampling = Sampling::default().with_temperature(random.below(3) as f32 / 2.0).with_seed(random.any());
    let count = 1 + random.below(LENGTH) as usize;
    Request::tokens(prompt).with_sampling(sampling).with_max_tokens(count).with_ignore_end(true)
}
