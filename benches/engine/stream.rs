//! One stream through the engine beside a loop over a session, written by hand.

use crate::{
    by_hand::ByHand,
    ours,
    peer::{Ask, Setting},
    prompts,
    watched::{Watch, Watched},
};
use infer::{Engine, Model, Sampling, Token};
use infer_benches::{
    Bar, Figure, Run,
    turns::{Times, take, timed},
};
use infer_core::testing::Hooked;
use std::time::{Duration, Instant};

const OURS: usize = 0;
const HAND: usize = 1;
const HAND_AGAIN: usize = 2;

const CONTEXT: usize = 1024;
const PROMPT: usize = 64;
/// Rounds before the measured ones of each set.
const WARM: usize = 6;
/// Tokens of each text that is read as it comes.
const COUNT: usize = 48;

pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    steps(run, setting);
    texts(run, setting);
}

/// The engine's passes wait for leave, so that all take turns, step by step. A step of the engine is all its thread does from the
/// beginning of one pass to that of the next; of a loop by hand, feeding a token and looking at the next.
fn steps(run: &mut Run, setting: &Setting) {
    let (sets, rounds) = if run.quick() { (1, 60) } else { (5, 200) };
    run.progress(&format!("stream: {sets} × {rounds} rounds of one token"));
    let tokenizer = setting.tokenizer();
    let sets = (0..sets).map(|set| {
        let ask = Ask { prompt: prompts::tokens(&*tokenizer, 4000 + set, PROMPT), count: WARM + rounds + 8 };
        let mut hands = [(); 2].map(|()| ByHand::new(setting, CONTEXT));
        let mut last = [Token(0); 2];
        for (hand, last) in hands.iter_mut().zip(&mut last) {
            hand.begin(&Sampling::greedy(), &ask.prompt);
            *last = hand.step(&ask.prompt)[0].token;
        }
        let watch = Watch::closed();
        let watched = watch.clone();
        let engine = ours::engine(setting, |builder| {
            builder.with_sequences(1).with_context(CONTEXT).with_prefix_cache(0).with_sessions(
                move |model: &dyn Model, options| {
                    Ok(Box::new(Hooked::new(model.session(options)?, Watched::new(watched.clone()))))
                },
            )
        });
        let text = ours::generate(&engine, &ask);
        let mut fed = 0;
        while fed < PROMPT {
            fed += watch.step().tokens;
        }
        let mut measure = |rounds| {
            take::<3>(rounds, |who, _| {
                if who == OURS {
                    let step = watch.step();
                    return step.pass + step.besides;
                }
                let (hand, last) = (&mut hands[who - HAND], &mut last[who - HAND]);
                let (took, next) = timed(|| hand.step(&[*last])[0].token);
                *last = next;
                took
            })
        };
        measure(WARM);
        let times = measure(rounds);
        watch.release();
        drop(text);
        times
    });
    let times = Times::joined(sets);
    report(run, ["engine/stream/step", "engine/stream/step time"], &times, Some(0.98));
}

/// Whole texts in turns, the engine's read by a thread as they come: the time from the first token to the last.
fn texts(run: &mut Run, setting: &Setting) {
    let (sets, rounds) = if run.quick() { (1_u64, 2) } else { (4, 12) };
    run.progress(&format!("stream: {sets} × {rounds} rounds of a text of {COUNT} tokens"));
    let tokenizer = setting.tokenizer();
    let sets = (0..sets).map(|set| {
        let mut hands = [(); 2].map(|()| ByHand::new(setting, CONTEXT));
        let engine =
            ours::engine(setting, |builder| builder.with_sequences(1).with_context(CONTEXT).with_prefix_cache(0));
        let mut measure = |rounds, from| {
            take::<3>(rounds, |who, round| {
                let prompt = prompts::tokens(&*tokenizer, 5000 + 100 * set + (from + round) as u64, PROMPT);
                let ask = Ask { prompt, count: COUNT };
                if who == OURS { engine_text(&engine, &ask) } else { hand_text(&mut hands[who - HAND], &ask) }
            })
        };
        measure(1, 99);
        measure(rounds, 0)
    });
    let times = Times::joined(sets);
    report(run, ["engine/stream/text", "engine/stream/text time"], &times, None);
}

fn engine_text(engine: &Engine, ask: &Ask) -> Duration {
    let (mut first, mut tokens) = (None, 0);
    for piece in ours::generate(engine, ask) {
        first.get_or_insert_with(Instant::now);
        tokens += piece.tokens.len();
    }
    assert_eq!(tokens, ask.count, "the engine made other tokens than it was asked for");
    first.expect("tokens came").elapsed()
}

fn hand_text(hand: &mut ByHand, ask: &Ask) -> Duration {
    hand.begin(&Sampling::greedy(), &ask.prompt);
    let mut last = hand.step(&ask.prompt)[0].token;
    let first = Instant::now();
    for _ in 1..ask.count {
        last = hand.step(&[last])[0].token;
    }
    first.elapsed()
}

fn report(run: &mut Run, [ratio, time]: [&'static str; 2], times: &Times<3>, bar: Option<f64>) {
    let hand = f64::midpoint(times.mean(HAND), times.mean(HAND_AGAIN));
    let medians = f64::midpoint(times.median(HAND), times.median(HAND_AGAIN)) / times.median(OURS);
    let figure = Figure::new(ratio, hand / times.mean(OURS), "hand/engine")
        .with_against_itself(times.mean(HAND) / times.mean(HAND_AGAIN))
        .with_note(format!("means of {} rounds; medians give {medians:.3}", times.rounds()));
    run.timing(match bar {
        Some(bar) => figure.with_bar(Bar::AtLeast(bar)),
        None => figure,
    });
    run.timing(Figure::new(time, times.mean(OURS) * 1e3, "ms").with_note(format!("by hand {:.3}", hand * 1e3)));
}
