//! A conversation of eight turns: what was computed is kept from turn to turn.

use crate::{
    ours,
    peer::{Ask, Setting},
    prompts,
};
use infer::{Engine, Token};
use infer_benches::{Bar, Figure, Run, turns::take};
use std::{
    thread,
    time::{Duration, Instant},
};

const TURNS: usize = 8;
/// Tokens of the system prompt.
const SYSTEM: usize = 64;
/// Tokens a turn adds: a question, and what was answered.
const QUESTION: usize = 32;
const ANSWER: usize = 48;
const CONTEXT: usize = SYSTEM + TURNS * (QUESTION + ANSWER) + 64;

const OURS: usize = 0;
const SERVER: usize = 1;
const SERVER_AGAIN: usize = 2;

/// In each round each side has a conversation of its own, so that no cache holds any of it.
pub(crate) fn measure(run: &mut Run, setting: &Setting) {
    let rounds = if run.quick() { 1 } else { 5 };
    run.progress(&format!("chat: {rounds} rounds of {TURNS} turns"));
    let engine = ours::engine(setting, |builder| builder.with_sequences(1).with_context(CONTEXT));
    let server = setting.server(&["--parallel", "1", "--ctx-size", &CONTEXT.to_string()].map(str::to_owned));
    let mut firsts = [const { Vec::new() }; 3];
    let mut number = 2000;
    let mut talk = |who: usize| {
        number += 1;
        // The server's threads look for work for a while after its last pass, and would take a core from who comes next.
        thread::sleep(Duration::from_millis(500));
        if who == OURS {
            turns(setting, number, |ask| of(&engine, ask))
        } else {
            turns(setting, number, |ask| ask.streamed(&server))
        }
    };
    // Once each, so that all memory was touched.
    for who in [OURS, SERVER] {
        talk(who);
    }
    take::<3>(rounds, |who, _| {
        let of_turns = talk(who);
        firsts[who].push(of_turns);
        of_turns[TURNS - 1]
    });
    report(run, &firsts);
    if let Some(peak) = server.peak() {
        run.figure(Figure::new("engine/chat/server peak", peak as f64 / 1e6, "MB"));
    }
}

/// One conversation: the time to the first token of each turn.
fn turns(setting: &Setting, number: u64, mut answer: impl FnMut(&Ask) -> (Duration, Vec<Token>)) -> [Duration; TURNS] {
    let tokenizer = setting.tokenizer();
    let mut ask = Ask { prompt: prompts::tokens(&*tokenizer, number, SYSTEM), count: ANSWER };
    std::array::from_fn(|turn| {
        ask.prompt.extend(prompts::tokens(&*tokenizer, number * 100 + turn as u64, QUESTION));
        let (first, answer) = answer(&ask);
        ask.prompt.extend(answer);
        first
    })
}

/// How long the engine takes to the first token, and all tokens it drew.
fn of(engine: &Engine, ask: &Ask) -> (Duration, Vec<Token>) {
    let begun = Instant::now();
    let (mut first, mut tokens) = (None, Vec::new());
    for piece in ours::generate(engine, ask) {
        first.get_or_insert_with(|| begun.elapsed());
        tokens.extend(piece.tokens.iter().map(|sampled| sampled.token));
    }
    (first.expect("tokens came"), tokens)
}

fn report(run: &mut Run, firsts: &[Vec<[Duration; TURNS]>; 3]) {
    let best = |who: usize, turn: usize| {
        firsts[who].iter().map(|turns| turns[turn - 1].as_secs_f64()).fold(f64::INFINITY, f64::min)
    };
    let note = format!(
        "best of {} conversations; every turn but the first has as many new tokens, {} of {}",
        firsts[OURS].len(),
        QUESTION + 1,
        CONTEXT
    );
    run.timing(
        Figure::new("engine/chat/turn 8 to turn 2", best(OURS, TURNS) / best(OURS, 2), "")
            .with_bar(Bar::AtMost(1.5))
            .with_note(note),
    );
    // As many rounds as ours: the best of twice as many would be better by chance.
    let server = best(SERVER, TURNS);
    run.timing(
        Figure::new("engine/chat/turn 8", best(OURS, TURNS) / server, "ours/server")
            .with_bar(Bar::AtMost(1.0))
            .with_against_itself(best(SERVER, TURNS) / best(SERVER_AGAIN, TURNS))
            .with_note(format!("llama-server with its cache of prompts, {:.1} ms", server * 1e3)),
    );
    for turn in 1..=TURNS {
        let note = format!("llama-server {:.1}", best(SERVER, turn) * 1e3);
        run.timing(
            Figure::new(format!("engine/chat/turn {turn}/first token"), best(OURS, turn) * 1e3, "ms").with_note(note),
        );
    }
}
