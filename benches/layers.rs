//! What our layers cost a step: the same steps over the faked table, through `Session` and by hand.
//!
//! The faked model computes next to nothing and has 259 tokens, so what is left of a step, less what the fake takes when it
//! is called alone, is ours: the checks of the batch, filling the native one, finding the row, the draw, the bookkeeping.

use infer_benches::{
    Bar, Figure, Run,
    raw::{Context, Spy, argmax},
    turns::{take, timed},
};
use infer_core::{Batch, OpenOptions, Sampling, Session, Token, Want, sampling::Sampler};
use infer_llama::{Llama, Model, SessionOptions};
use infer_sys::llama::fake::{self, Script};
use std::{hint::black_box, process::ExitCode, time::Duration};

#[global_allocator]
static HEAP: kit::Counting = kit::Counting;

const OURS: usize = 0;
const FAKE: usize = 1;
const FAKE_AGAIN: usize = 2;

/// Steps that are timed at once: one alone is too short for the clock.
const BLOCK: usize = 200;
const CONTEXT: usize = 256;
/// A vocabulary as models have one.
const VOCAB: usize = 49_152;

fn main() -> ExitCode {
    let mut run = Run::from_args();
    // The header is read and checked as always; what is loaded behind it is the fake.
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let _script = Script::new().with_context_length(CONTEXT as i32).install();
    let spy = Spy::on(fake::api());
    let opened = Llama::from_api(spy.door()).and_then(|llama| Model::open(&llama, path));
    let model = opened.unwrap_or_else(|error| panic!("{error}"));
    run.progress("a step over the faked table");
    step(&mut run, spy, &model, ["layers/step", "layers/step/allocations"], Want::Token);
    step(&mut run, spy, &model, ["layers/logits", "layers/logits/allocations"], Want::Logits);
    run.progress("a draw");
    draw(&mut run);
    run.finish()
}

/// One step of one sequence through the session, less the same step on the table by hand.
fn step(run: &mut Run, spy: Spy, model: &Model, [time, count]: [&'static str; 2], want: Want) {
    let rounds = if run.quick() { 200 } else { 2000 };
    let options = SessionOptions::new().with_context(CONTEXT).with_threads(1);
    let mut session: Box<dyn Session> = Box::new(model.session(&options).unwrap_or_else(|error| panic!("{error}")));
    let sequence = session.open(&OpenOptions::default()).expect("the first sequence");
    if want == Want::Token {
        session.sample_with(&sequence, &Sampling::greedy(), &[]).expect("greedy is in range");
    }
    let mut batch = Batch::new();
    let mut ours = |session: &mut dyn Session| {
        batch.clear();
        batch.push(&sequence, &[Token(7)], want);
        session.decode(&batch).unwrap_or_else(|error| panic!("{error}"));
        black_box(session.outputs());
    };
    let [mut fake, mut fake_again] = [(); 2].map(|()| Context::like_last(spy, model));
    let by_hand = |context: &mut Context<'_>| {
        black_box(context.decode(&[Token(7)]));
    };
    let times = take::<3>(rounds, |who, _| match who {
        OURS => {
            session.truncate(&sequence, 0).expect("cutting to 0 always works");
            block(|| ours(&mut *session))
        }
        FAKE => {
            fake.clear();
            block(|| by_hand(&mut fake))
        }
        _ => {
            fake_again.clear();
            block(|| by_hand(&mut fake_again))
        }
    });
    let nanoseconds = |who| times.median(who) / BLOCK as f64 * 1e9;
    let alone = f64::midpoint(nanoseconds(FAKE), nanoseconds(FAKE_AGAIN));
    let note = format!("median of {rounds} blocks of {BLOCK}; the fake alone {alone:.0}");
    let figure = Figure::new(time, nanoseconds(OURS) - alone, "ns")
        .with_bar(Bar::Below(1000.0))
        .with_against_itself(nanoseconds(FAKE) / nanoseconds(FAKE_AGAIN))
        .with_note(note);
    run.timing(figure);

    session.truncate(&sequence, 0).expect("cutting to 0 always works");
    ours(&mut *session);
    let (heap, _) = kit::heap(|| block(|| ours(&mut *session)));
    let figure = Figure::new(count, heap.allocations as f64, "allocations").with_bar(Bar::AtMost(0.0));
    run.figure(figure.with_note(format!("in {BLOCK} steps wanting {want:?}")));
}

fn block(mut step: impl FnMut()) -> Duration {
    timed(|| (0..BLOCK).for_each(|_| step())).0
}

/// The greedy draw from a row of a real vocabulary's size, with its log-probability, beside the bare search for the largest.
fn draw(run: &mut Run) {
    let rounds = if run.quick() { 200 } else { 2000 };
    let row: Vec<f32> = (0..VOCAB as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e6 - 8.0).collect();
    let mut sampler = Sampler::new(&Sampling::greedy(), &[], VOCAB).expect("greedy is in range");
    let mut drawn = Vec::with_capacity(1);
    let times = take::<2>(rounds, |who, _| {
        let draw = || match who {
            OURS => {
                drawn.clear();
                sampler.sample(black_box(&row), 0, &mut drawn).expect("the row is in order");
                black_box(drawn[0].token)
            }
            _ => argmax(black_box(&row)),
        };
        timed(draw).0
    });
    let figure = Figure::new("layers/draw", times.median(OURS) * 1e6, "us");
    run.timing(figure.with_note(format!("greedy of {VOCAB}; the bare search {:.1}", times.median(1) * 1e6)));
}
