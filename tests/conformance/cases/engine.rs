//! What an [`Engine`] makes of a session: texts among others, begun with what others computed, that gave way and came back, are as alone.

use crate::{
    opened::Opened,
    setting::{CONTEXT, PASS, Setting, draw, feed, open, refused},
    subject::Pace,
};
use infer::{Engine, ErrorKind, Generation, KvLayout, Request, Sampling, Token, Want};
use kit::greedy::Run;

/// Sequences that run at once: fewer than there are requests.
const RUNNING: usize = 3;

fn engine(at: &Setting<'_>, opened: fn() -> Opened, cells: Option<usize>) -> Engine {
    let builder = Engine::builder_with(move || Ok(opened().model)).with_context(CONTEXT).with_sequences(RUNNING);
    // The subject's own layout stands, so the engine is to ask for no other.
    let is_split = at.subject.name.ends_with("_split");
    let builder = builder.with_layout(if is_split { KvLayout::Split } else { KvLayout::Unified });
    let builder = match cells {
        Some(cells) => builder.with_cells(cells),
        None => builder,
    };
    builder.with_threads(1).build().unwrap_or_else(|error| panic!("no engine: {error}"))
}

fn count(at: &Setting<'_>) -> usize {
    if at.subject.pace == Pace::Quick { 24 } else { 8 }
}

fn request(prompt: &[Token], count: usize) -> Request {
    Request::tokens(prompt).with_max_tokens(count).with_ignore_end(true)
}

/// The greedy tokens after a prompt in a session that does nothing else, and how sure each was.
fn alone(at: &Setting<'_>, prompt: &[Token], count: usize) -> Run {
    let mut session = at.session();
    let seq = open(&mut *session);
    session.sample_with(&seq, &Sampling::greedy(), prompt).unwrap();
    let rest = prompt.len().saturating_sub(PASS);
    for chunk in prompt[..rest].chunks(PASS) {
        feed(&mut *session, &seq, chunk, Want::Nothing).unwrap();
    }
    let trace = draw(&mut *session, &seq, &prompt[rest..], count);
    let gap = |row: &Vec<f32>| {
        let (mut best, mut next) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        for &logit in row {
            next = next.max(logit.min(best));
            best = best.max(logit);
        }
        best - next
    };
    Run { gaps: trace.rows.iter().map(gap).collect(), tokens: trace.tokens }
}

#[track_caller]
fn is_as_alone(at: &Setting<'_>, generation: Generation, wanted: &Run, what: &str) {
    let done = generation.complete().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found: Vec<_> = done.tokens.iter().map(|sampled| sampled.token.0).collect();
    // Each of two logits may have moved.
    if let Err(why) = wanted.agrees_with(&found, 2.0 * at.subject.scattered) {
        panic!("{what}: {why}");
    }
}

/// Unlike each other, but for one that begins as another does.
fn prompts(at: &Setting<'_>) -> Vec<Vec<Token>> {
    let branch = [at.text(0, 40), at.text(2, 7)].concat();
    vec![at.text(0, 46), at.text(1, 25), at.text(2, 70), branch, at.text(3, 10)]
}

pub(crate) fn texts_of_an_engine_are_as_alone(at: &Setting<'_>) {
    let count = count(at);
    let prompts = prompts(at);
    let runs: Vec<_> = prompts.iter().map(|prompt| alone(at, prompt, count)).collect();
    let engine = engine(at, at.subject.open, None);
    // The second time each finds what the first one left, where the model can go back to it.
    for round in ["among others", "again"] {
        let all: Vec<_> = prompts.iter().map(|prompt| engine.generate(request(prompt, count))).collect();
        for ((place, generation), run) in all.into_iter().enumerate().zip(&runs) {
            is_as_alone(at, generation, run, &format!("text {place} {round}"));
        }
    }
    // Begun last, so that its sequence is kept also where there are no more of them than run at once.
    is_as_alone(at, engine.generate(request(&prompts[0], count)), &runs[0], "text 0 by itself");
    let stats = engine.stats();
    assert_eq!((stats.waiting, stats.failed, stats.rebuilt), (0, 0, 0));
    let longer =
        [prompts[0].clone(), runs[0].tokens.iter().map(|&token| Token(token)).collect(), at.text(3, 5)].concat();
    let generation = engine.generate(request(&longer, count));
    is_as_alone(at, generation, &alone(at, &longer, count), "a text that goes on");
    assert!(engine.stats().cached_tokens > stats.cached_tokens, "every model can go on from where a text has ended");
}

pub(crate) fn texts_of_an_engine_that_give_way_come_to_the_same(at: &Setting<'_>) {
    let Some(scarce) = at.subject.scarce else { return };
    let count = 60;
    let prompts: Vec<_> = (0..RUNNING).map(|which| at.text(which, 50)).collect();
    let runs: Vec<_> = prompts.iter().map(|prompt| alone(at, prompt, count)).collect();
    let engine = engine(at, scarce, Some(256));
    // Three texts of 110 do not fit 256 cells. One that comes when the others are nearly done waits from the beginning, so it may take
    // more than one try on a busy machine.
    for _ in 0..50 {
        let all: Vec<_> = prompts.iter().map(|prompt| engine.generate(request(prompt, count))).collect();
        for ((place, generation), run) in all.into_iter().enumerate().zip(&runs) {
            is_as_alone(at, generation, run, &format!("text {place}"));
        }
        if engine.stats().preemptions > 0 {
            return;
        }
    }
    panic!("no text has ever given way: {}", engine.stats());
}

pub(crate) fn requests_of_an_engine_that_cannot_be_are_errors_of_their_own(at: &Setting<'_>) {
    let engine = engine(at, at.subject.open, None);
    let good = at.text(1, 20);
    let running = engine.generate(request(&good, 8));
    let complete = |request: Request| engine.generate(request).complete();
    refused(complete(request(&[], 8)), ErrorKind::InvalidInput, "no tokens");
    refused(complete(request(&[Token(u32::MAX)], 8)), ErrorKind::InvalidInput, "a token outside the vocabulary");
    refused(complete(request(&at.text(0, CONTEXT + 1), 8)), ErrorKind::ContextFull, "more than the context");
    refused(
        complete(request(&good, 8).with_adapter("nobody")),
        ErrorKind::InvalidInput,
        "an adapter that is not there",
    );
    refused(complete(request(&good, 8).with_n(RUNNING + 1)), ErrorKind::InvalidInput, "more than there are sequences");
    let hot = Sampling::default().with_temperature(f32::NAN);
    refused(complete(request(&good, 8).with_sampling(hot)), ErrorKind::InvalidInput, "no temperature");
    is_as_alone(at, running, &alone(at, &good, 8), "who was not meant");
}

pub(crate) fn an_engine_that_ends_leaves_nobody_waiting(at: &Setting<'_>) {
    let engine = engine(at, at.subject.open, None);
    let prompt = at.text(1, 20);
    let mut all: Vec<_> = (0..RUNNING + 2).map(|_| engine.generate(request(&prompt, CONTEXT))).collect();
    let first = all[0].wait().expect("a piece comes").unwrap();
    drop(engine);
    if first.finish.is_some() {
        assert!(all.remove(0).into_iter().next().is_none());
    }
    // Who had all of its text by then has it; the others are told.
    for generation in all {
        let ended = generation.into_iter().last();
        let is_told = matches!(&ended, Some(Err(error)) if error.kind() == ErrorKind::Closed);
        assert!(is_told || matches!(&ended, Some(Ok(piece)) if piece.finish.is_some()), "{ended:?}");
    }
}
