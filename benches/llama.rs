//! A step of `Session` beside the same step straight on llama.cpp's table.
//!
//! One model, three contexts of the same parameters, fed the same tokens in turns: our session, and the raw side twice.
//! Each side fills its batch, makes one pass, and takes the most probable token of the row it gets. Where in memory a
//! context comes to lie is worth some per cent for as long as it lives, so the rounds are shared out over several sets of them.

use infer_benches::{
    Bar, Figure, Run,
    raw::{Context, Spy},
    turns::{Times, take, timed},
};
use infer_core::{Batch, OpenOptions, Sampling, Sequence, Session, Special, Token, Tokenizer, Want};
use infer_llama::{Llama, Model, SessionOptions};
use infer_sys::llama::Api;
use kit::prompts;
use std::{process::ExitCode, ptr, time::Duration};

#[global_allocator]
static HEAP: kit::Counting = kit::Counting;

const OURS: usize = 0;
const RAW: usize = 1;
const RAW_AGAIN: usize = 2;

const CONTEXT: usize = 1024;
/// How many sets of contexts share the rounds.
const SETS: usize = 5;
/// Positions there are before the first measured step.
const PROMPT: usize = 128;
const PREFILL: usize = 512;
/// Rounds before the measured ones of each set: by then memory was touched once.
const WARM: usize = 6;
/// Steps that are looked at for allocations.
const STEADY: usize = 100;

fn main() -> ExitCode {
    let mut run = Run::from_args();
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let spy = Spy::on(Api::linked().unwrap_or_else(|error| panic!("{error}")));
    let opened = Llama::from_api(spy.door()).and_then(|llama| Model::open(&llama, &path));
    let model = opened.unwrap_or_else(|error| panic!("{error}"));
    let mut text = Vec::new();
    model.tokenizer().encode(&prompts::logbook(60), Special::ADD, &mut text).expect("a prompt encodes");

    let (heap, mut ours) = kit::heap(|| Ours::new(&model));
    steady(&mut run, spy, &mut ours, heap.largest);
    drop(ours);
    decode(&mut run, spy, &model, &text[..PROMPT]);
    prefill(&mut run, spy, &model, &text[..PREFILL]);
    run.finish()
}

struct Sides<'m> {
    ours: Ours,
    raw: Context<'m>,
    raw_again: Context<'m>,
}

impl<'m> Sides<'m> {
    /// A set of contexts. No side is always made first.
    fn new(spy: Spy, model: &'m Model, set: usize) -> Self {
        let (mut ours, mut raw, mut raw_again) = (None, None, None);
        for place in 0..3 {
            match (set + place) % 3 {
                OURS => ours = Some(Ours::new(model)),
                RAW => raw = Some(Context::like_last(spy, model)),
                _ => raw_again = Some(Context::like_last(spy, model)),
            }
        }
        let made = "each has had its place";
        Self { ours: ours.expect(made), raw: raw.expect(made), raw_again: raw_again.expect(made) }
    }

    /// One pass of one of them: how long it took, and the next token.
    fn step(&mut self, who: usize, tokens: &[Token]) -> (Duration, Token) {
        match who {
            OURS => timed(|| self.ours.step(tokens)),
            RAW => timed(|| self.raw.step(tokens)),
            _ => timed(|| self.raw_again.step(tokens)),
        }
    }

    fn clear(&mut self, who: usize) {
        match who {
            OURS => self.ours.clear(),
            RAW => self.raw.clear(),
            _ => self.raw_again.clear(),
        }
    }
}

/// Our side: a session as everyone has it.
struct Ours {
    session: Box<dyn Session>,
    sequence: Sequence,
    batch: Batch,
}

impl Ours {
    fn new(model: &Model) -> Self {
        let options = SessionOptions::new().with_context(CONTEXT).with_batch(PREFILL);
        let mut session = Box::new(model.session(&options).unwrap_or_else(|error| panic!("{error}")));
        let sequence = session.open(&OpenOptions::default()).expect("the first sequence");
        session.sample_with(&sequence, &Sampling::greedy(), &[]).expect("greedy is in range");
        Self { session, sequence, batch: Batch::new() }
    }

    fn clear(&mut self) {
        self.session.truncate(&self.sequence, 0).expect("cutting to 0 always works");
    }

    fn pass(&mut self, tokens: &[Token], want: Want) -> usize {
        self.batch.clear();
        let entry = self.batch.push(&self.sequence, tokens, want);
        self.session.decode(&self.batch).unwrap_or_else(|error| panic!("{error}"));
        entry
    }

    fn step(&mut self, tokens: &[Token]) -> Token {
        let entry = self.pass(tokens, Want::Token);
        self.session.outputs().token(entry).expect("a token was wanted")
    }
}

fn decode(run: &mut Run, spy: Spy, model: &Model, prompt: &[Token]) {
    let rounds = if run.quick() { 100 } else { 1000 } / SETS;
    run.progress(&format!("decode: {SETS} × {rounds} rounds of one token"));
    let sets = (0..SETS).map(|set| {
        let mut sides = Sides::new(spy, model, set);
        let mut last = [OURS, RAW, RAW_AGAIN].map(|who| sides.step(who, prompt).1);
        let mut fed = [(); 3].map(|()| Vec::with_capacity(WARM + rounds));
        let mut measure = |rounds| {
            take(rounds, |who, _| {
                fed[who].push(last[who]);
                let (took, next) = sides.step(who, &[last[who]]);
                last[who] = next;
                took
            })
        };
        measure(WARM);
        let times = measure(rounds);
        assert!(fed[OURS] == fed[RAW] && fed[RAW] == fed[RAW_AGAIN], "the sides made other tokens");
        times
    });
    let times = Times::joined(sets);
    report(run, ["llama/decode", "llama/decode/step"], &times, 0.98);
}

fn prefill(run: &mut Run, spy: Spy, model: &Model, prompt: &[Token]) {
    let (sets, rounds) = if run.quick() { (1, 2) } else { (SETS, 20 / SETS) };
    run.progress(&format!("prefill: {sets} × {rounds} rounds of {} tokens", prompt.len()));
    let sets = (0..sets).map(|set| {
        let mut sides = Sides::new(spy, model, set);
        for who in [OURS, RAW, RAW_AGAIN] {
            sides.step(who, &prompt[..WARM]);
        }
        take(rounds, |who, _| {
            sides.clear(who);
            sides.step(who, prompt).0
        })
    });
    let times = Times::joined(sets);
    report(run, ["llama/prefill", "llama/prefill/pass"], &times, 0.97);
}

fn report(run: &mut Run, [ratio, time]: [&'static str; 2], times: &Times<3>, bar: f64) {
    let raw = f64::midpoint(times.mean(RAW), times.mean(RAW_AGAIN));
    let medians = f64::midpoint(times.median(RAW), times.median(RAW_AGAIN));
    let figure = Figure::new(ratio, raw / times.mean(OURS), "raw/ours")
        .with_bar(Bar::AtLeast(bar))
        .with_against_itself(times.mean(RAW) / times.mean(RAW_AGAIN))
        .with_note(format!("means of {} rounds; medians give {:.3}", times.rounds(), medians / times.median(OURS)));
    run.timing(figure);
    run.timing(Figure::new(time, times.mean(OURS) * 1e3, "ms").with_note(format!("raw {:.3}", raw * 1e3)));
}

/// What our layers do besides: nothing on the heap, and no row of logits moves.
fn steady(run: &mut Run, spy: Spy, ours: &mut Ours, largest: usize) {
    let mut last = ours.step(&[Token(1)]);
    let (heap, ()) = kit::heap(|| {
        for _ in 0..STEADY {
            last = ours.step(&[last]);
        }
    });
    let note = format!("in {STEADY} steps of one sequence, greedy");
    run.figure(
        Figure::new("llama/allocations", heap.allocations as f64, "allocations")
            .with_bar(Bar::AtMost(0.0))
            .with_note(note),
    );

    let entry = ours.pass(&[last], Want::Logits);
    let row = ours.session.outputs().logits(entry).expect("a row was wanted");
    // Where the row is the runtime's own there is no copy; and a session that never had room for a row made none to draw from.
    let copied = if ptr::eq(row.as_ptr(), spy.last_row()) && largest < size_of_val(row) { 0 } else { size_of_val(row) };
    let note = format!(
        "the view is llama.cpp's row; the session's largest block has {largest} bytes, a row {}",
        size_of_val(row)
    );
    run.figure(Figure::new("llama/copied", copied as f64, "bytes").with_bar(Bar::AtMost(0.0)).with_note(note));
}
