//! Embeddings by `Encoder` beside the same work straight on llama.cpp's table, as its program `llama-embedding` does it.
//!
//! One model (MiniLM), three contexts of the same parameters, given the same texts in turns: our encoder, and the raw side
//! twice. Each side fills its batches, makes its passes, and divides each vector by its length. Where in memory a context comes to
//! lie is worth some per cent for as long as it lives, so the rounds are shared out over several sets of them.

use infer_benches::{
    Bar, Figure, Run,
    raw::{Context, Spy},
    turns::{Times, take, timed},
};
use infer_core::{Encoder as _, EncoderOptions, Special, Token, Tokenizer as _};
use infer_llama::{Encoder, Llama, Model};
use infer_sys::llama::Api;
use kit::prompts;
use std::{process::ExitCode, time::Duration};

#[global_allocator]
static HEAP: kit::Counting = kit::Counting;

const OURS: usize = 0;
const RAW: usize = 1;
const RAW_AGAIN: usize = 2;

/// Tokens of a pass.
const TOKENS: usize = 512;
/// How many sets of contexts share the rounds.
const SETS: usize = 5;
/// Rounds before the measured ones of each set: by then memory was touched once.
const WARM: usize = 6;
/// Encodings that are looked at for allocations.
const STEADY: usize = 20;
/// How far numbers of a vector of length 1 may lie apart.
const NEAR: f32 = 1e-4;

fn main() -> ExitCode {
    let mut run = Run::from_args();
    let path = build_support::fixtures::model("minilm").unwrap_or_else(|error| panic!("{error}"));
    let spy = Spy::on(Api::linked().unwrap_or_else(|error| panic!("{error}")));
    let opened = Llama::from_api(spy.door()).and_then(|llama| Model::open(&llama, &path));
    let model = opened.unwrap_or_else(|error| panic!("{error}"));
    let texts = texts(&model);

    steady(&mut run, &model, &texts);
    // One pass, which is the same on all sides; and many, into which we put the texts in another order.
    let mut tokens = 0;
    let fits = |text: &&Vec<Token>| {
        tokens += text.len();
        tokens <= TOKENS
    };
    let one: Vec<Vec<Token>> = texts.iter().take_while(fits).cloned().collect();
    measure(&mut run, spy, &model, ["embeddings/pass", "embeddings/pass/time"], &one, 40);
    measure(&mut run, spy, &model, ["embeddings/job", "embeddings/job/time"], &texts, 4);
    run.finish()
}

/// The lines of a logbook and what was written around them: short and long ones, as they come.
fn texts(model: &Model) -> Vec<Vec<Token>> {
    let log = prompts::logbook(40);
    let days: Vec<&str> = log.lines().collect();
    let texts = days.iter().enumerate().map(|(day, line)| match day % 4 {
        0 => days[day..(day + 3).min(days.len())].join(" "),
        1 => line.split(';').next().unwrap_or(line).to_owned(),
        _ => (*line).to_owned(),
    });
    let tokens = texts.map(|text| {
        let mut tokens = Vec::new();
        model.tokenizer().encode(&text, Special::ADD, &mut tokens).expect("a text encodes");
        tokens
    });
    tokens.collect()
}

struct Sides<'m> {
    ours: Encoder,
    raw: Context<'m>,
    raw_again: Context<'m>,
    vectors: [Vec<f32>; 3],
}

impl<'m> Sides<'m> {
    /// A set of contexts. No side is always made first.
    fn new(spy: Spy, model: &'m Model, set: usize) -> Self {
        let (mut ours, mut raw, mut raw_again) = (None, None, None);
        for place in 0..3 {
            match (set + place) % 3 {
                OURS => ours = Some(encoder(model)),
                RAW => raw = Some(Context::like_last(spy, model)),
                _ => raw_again = Some(Context::like_last(spy, model)),
            }
        }
        let made = "each has had its place";
        let vectors = Default::default();
        Self { ours: ours.expect(made), raw: raw.expect(made), raw_again: raw_again.expect(made), vectors }
    }

    /// All vectors, by one of them: how long it took.
    fn step(&mut self, who: usize, texts: &[&[Token]]) -> Duration {
        let vectors = &mut self.vectors[who];
        match who {
            OURS => timed(|| self.ours.encode(texts).unwrap_or_else(|error| panic!("{error}"))).0,
            RAW => timed(|| self.raw.embed(texts, TOKENS, vectors)).0,
            _ => timed(|| self.raw_again.embed(texts, TOKENS, vectors)).0,
        }
    }

    /// The largest difference between our numbers and theirs.
    fn apart(&self, texts: usize) -> f32 {
        let ours = self.ours.vectors();
        let ours = (0..texts).flat_map(|text| ours.vector(text).expect("each text has a vector"));
        assert_eq!(self.vectors[RAW].len(), texts * self.ours.info().width);
        ours.zip(&self.vectors[RAW]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }
}

fn encoder(model: &Model) -> Encoder {
    let options = EncoderOptions::new().with_context(TOKENS).with_batch(TOKENS);
    model.encoder(&options).unwrap_or_else(|error| panic!("{error}"))
}

fn measure(
    run: &mut Run,
    spy: Spy,
    model: &Model,
    [ratio, time]: [&'static str; 2],
    texts: &[Vec<Token>],
    rounds: usize,
) {
    let texts: Vec<&[Token]> = texts.iter().map(Vec::as_slice).collect();
    let tokens: usize = texts.iter().map(|text| text.len()).sum();
    let (sets, rounds) = if run.quick() { (1, 2) } else { (SETS, rounds) };
    run.progress(&format!("{sets} × {rounds} rounds of {} texts, {tokens} tokens in all", texts.len()));
    // Spied on: the raw sides are made like it.
    drop(encoder(model));
    let mut apart = 0.0_f32;
    let sets = (0..sets).map(|set| {
        let mut sides = Sides::new(spy, model, set);
        let warm = if run.quick() { 1 } else { WARM };
        take::<3>(warm, |who, _| sides.step(who, &texts));
        apart = apart.max(sides.apart(texts.len()));
        take(rounds, |who, _| sides.step(who, &texts))
    });
    let times = Times::<3>::joined(sets);
    assert!(apart < NEAR, "the sides made other vectors: {apart}");
    let raw = f64::midpoint(times.mean(RAW), times.mean(RAW_AGAIN));
    let medians = f64::midpoint(times.median(RAW), times.median(RAW_AGAIN));
    let figure = Figure::new(ratio, raw / times.mean(OURS), "raw/ours")
        .with_bar(Bar::AtLeast(0.97))
        .with_against_itself(times.mean(RAW) / times.mean(RAW_AGAIN))
        .with_note(format!("means of {} rounds; medians give {:.3}", times.rounds(), medians / times.median(OURS)));
    run.timing(figure);
    let note =
        format!("raw {:.3}; {:.0} tokens/s; vectors within {apart:.1e}", raw * 1e3, tokens as f64 / times.mean(OURS));
    run.timing(Figure::new(time, times.mean(OURS) * 1e3, "ms").with_note(note));
}

/// What our layers do besides: nothing on the heap.
fn steady(run: &mut Run, model: &Model, texts: &[Vec<Token>]) {
    let texts: Vec<&[Token]> = texts.iter().take(8).map(Vec::as_slice).collect();
    let mut encoder = encoder(model);
    let mut encode = || encoder.encode(&texts).unwrap_or_else(|error| panic!("{error}"));
    encode();
    let (heap, ()) = kit::heap(|| (0..STEADY).for_each(|_| encode()));
    let figure =
        Figure::new("embeddings/allocations", heap.allocations as f64, "allocations").with_bar(Bar::AtMost(0.0));
    run.figure(figure.with_note(format!("in {STEADY} encodings of {} texts", texts.len())));
}
