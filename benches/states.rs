//! A sequence of a thousand tokens saved, restored and forked, beside a plain copy of the bytes its state has.
//!
//! In each round every contestant takes one turn: ours, and the copy twice. All memory is there and was touched before, and each
//! has its own to read from and to write to: what one reads must not lie in a cache because another has read it.

use infer_benches::{
    Bar, Figure, Run,
    turns::{Times, take, timed},
};
use infer_core::{Batch, KvLayout, OpenOptions, Sequence, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{Llama, Model, Session, SessionOptions};
use kit::prompts;
use std::{hint::black_box, process::ExitCode, time::Duration};

#[global_allocator]
static HEAP: kit::Counting = kit::Counting;

const OURS: usize = 0;
const COPY: usize = 1;
const COPY_AGAIN: usize = 2;

const TOKENS: usize = 1000;
const CONTEXT: usize = 1024;
/// Rounds before the measured ones.
const WARM: usize = 6;

fn main() -> ExitCode {
    let mut run = Run::from_args();
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let opened = Llama::linked().and_then(|llama| Model::open(&llama, &path));
    let model = opened.unwrap_or_else(|error| panic!("{error}"));
    let mut text = Vec::new();
    model.tokenizer().encode(&prompts::logbook(120), Special::ADD, &mut text).expect("a prompt encodes");

    run.progress(&format!("a sequence of {TOKENS} tokens is computed"));
    let mut state = Vec::new();
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let (mut session, seq) = computed(&model, layout, &text[..TOKENS]);
        state.clear();
        session.save(&seq, &mut state).unwrap_or_else(|error| panic!("{error}"));
        if layout == KvLayout::Split {
            save(&mut run, &mut session, &seq, &state);
            restore(&mut run, &mut session, &state);
            heap(&mut run, &mut session, &seq, &state);
        } else {
            fork(&mut run, &mut session, &seq);
        }
    }
    run.finish()
}

fn computed(model: &Model, layout: KvLayout, tokens: &[Token]) -> (Session, Sequence) {
    let options = SessionOptions::new().with_context(CONTEXT).with_sequences(2).with_layout(layout);
    let mut session = model.session(&options).unwrap_or_else(|error| panic!("{error}"));
    let seq = session.open(&OpenOptions::default()).expect("the first sequence");
    let mut batch = Batch::new();
    batch.push(&seq, tokens, Want::Nothing);
    session.decode(&batch).unwrap_or_else(|error| panic!("{error}"));
    (session, seq)
}

fn save(run: &mut Run, session: &mut Session, seq: &Sequence, state: &[u8]) {
    let rounds = if run.quick() { 20 } else { 300 };
    run.progress(&format!("save: {rounds} rounds of {:.1} MB", state.len() as f64 / 1e6));
    let mut places = [(); 3].map(|()| vec![0_u8; state.len()]);
    let sources = [(); 3].map(|()| state.to_vec());
    let mut step = |who: usize| {
        let place = &mut places[who];
        if who == OURS {
            place.clear();
            let (took, saved) = timed(|| session.save(seq, place));
            saved.unwrap_or_else(|error| panic!("{error}"));
            took
        } else {
            copy(&sources[who], place)
        }
    };
    report(run, ["states/save", "states/save/time"], state.len(), &measured(rounds, &mut step));
    assert!(places.iter().all(|place| place == state), "the sides wrote other bytes");
}

fn restore(run: &mut Run, session: &mut Session, state: &[u8]) {
    let rounds = if run.quick() { 20 } else { 300 };
    run.progress(&format!("restore: {rounds} rounds of {:.1} MB", state.len() as f64 / 1e6));
    let mut places = [(); 3].map(|()| vec![0_u8; state.len()]);
    let sources = [(); 3].map(|()| state.to_vec());
    let mut step = |who: usize| {
        if who != OURS {
            return copy(&sources[who], &mut places[who]);
        }
        let state = &sources[OURS];
        let (took, restored) = timed(|| session.restore(&mut &state[..]));
        drop(restored.unwrap_or_else(|error| panic!("{error}")));
        // So that the next one need not clear up after this one.
        drop(session.open(&OpenOptions::default()).expect("one was dropped"));
        took
    };
    report(run, ["states/restore", "states/restore/time"], state.len(), &measured(rounds, &mut step));
}

/// A plain copy into memory that is there.
fn copy(from: &[u8], to: &mut [u8]) -> Duration {
    let (took, ()) = timed(|| to.copy_from_slice(from));
    black_box(to);
    took
}

fn measured(rounds: usize, step: &mut impl FnMut(usize) -> Duration) -> Times<3> {
    take::<3>(WARM, |who, _| step(who));
    take(rounds, |who, _| step(who))
}

fn report(run: &mut Run, [ratio, time]: [&'static str; 2], bytes: usize, times: &Times<3>) {
    let copy = f64::midpoint(times.median(COPY), times.median(COPY_AGAIN));
    let means = f64::midpoint(times.mean(COPY), times.mean(COPY_AGAIN));
    let figure = Figure::new(ratio, copy / times.median(OURS), "copy/ours")
        .with_bar(Bar::AtLeast(0.8))
        .with_against_itself(times.median(COPY) / times.median(COPY_AGAIN))
        .with_note(format!("medians of {} rounds; means give {:.3}", times.rounds(), means / times.mean(OURS)));
    run.timing(figure);
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    let note = format!("{:.1} GB/s; a copy {:.1} GB/s", rate(times.median(OURS)), rate(copy));
    run.timing(Figure::new(time, times.median(OURS) * 1e3, "ms").with_note(note));
}

/// What our layers keep of a state while it goes through: a chunk of it, not all.
fn heap(run: &mut Run, session: &mut Session, seq: &Sequence, state: &[u8]) {
    let mut place = Vec::with_capacity(state.len());
    let (saving, saved) = kit::heap(|| session.save(seq, &mut place));
    let (restoring, restored) = kit::heap(|| session.restore(&mut &state[..]).map(drop));
    saved.and(restored).unwrap_or_else(|error| panic!("{error}"));
    let note = format!("of {:.1} MB; saving {:.0} kB", state.len() as f64 / 1e6, saving.largest as f64 / 1e3);
    run.figure(
        Figure::new("states/largest block", restoring.largest as f64 / 1e3, "kB")
            .with_bar(Bar::AtMost(300.0))
            .with_note(note),
    );
}

fn fork(run: &mut Run, session: &mut Session, seq: &Sequence) {
    let rounds = if run.quick() { 50 } else { 1000 };
    run.progress(&format!("fork: {rounds} rounds in the unified layout"));
    let mut step = |_: usize| {
        let (took, child) = timed(|| session.fork(seq, TOKENS));
        drop(child.unwrap_or_else(|error| panic!("{error}")));
        drop(session.open(&OpenOptions::default()).expect("one was dropped"));
        took
    };
    take::<1>(WARM, |who, _| step(who));
    let times = take::<1>(rounds, |who, _| step(who));
    let note = format!("median of {} forks of {TOKENS} tokens; mean {:.1} us", times.rounds(), times.mean(0) * 1e6);
    run.timing(Figure::new("states/fork", times.median(0) * 1e6, "us").with_bar(Bar::Below(50.0)).with_note(note));
}
