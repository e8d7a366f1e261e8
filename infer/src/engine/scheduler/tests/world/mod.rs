//! Worlds: any requests in any order, any of them cancelled or dropped at any moment, any pass failing in any way, on sessions of any size
//! and kind. Whatever comes out is what each request would have given alone, and nothing is left when all have ended.
//!
//! - this file: what a world is, and how one is made up;
//! - [`watched`]: a session that fails as the world says, and remembers what it was asked for;
//! - [`run`]: the world's course, and what must hold after every turn of it;
//! - [`check`]: what may have become of each request.

mod check;
mod run;
mod watched;

use super::Settings;
use crate::{Overflow, Request, Sampling};
use infer_core::{
    ErrorKind, KvLayout, Token,
    testing::{Cuts, Fault, IM_START, Script},
};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};
use std::time::Duration;

/// Everything that is made up. Smaller and plainer values come first in each choice, so that a failure shrinks to what it needs.
#[derive(Clone, Debug)]
struct World {
    context: usize,
    batch: usize,
    sequences: usize,
    /// Cells there are, where they are fewer than all sequences can fill.
    cells: Option<usize>,
    layout: KvLayout,
    cuts: Cuts,
    settings: Settings,
    asks: Vec<Ask>,
    accidents: Vec<Accident>,
    /// Which of the makings of further sessions fail.
    broken: Vec<bool>,
}

/// A request, and its reader.
#[derive(Clone, Debug)]
struct Ask {
    /// Turns since the one before was asked for.
    after: usize,
    prompt: Vec<Token>,
    what: What,
    adapter: Option<&'static str>,
    fate: Fate,
    poison: Option<Poison>,
}

#[derive(Clone, Debug)]
enum What {
    Score,
    Generate {
        draw: Draw,
        seed: u64,
        max_tokens: Option<usize>,
        stop: Option<&'static str>,
        n: usize,
        overflow: Overflow,
    },
}

/// How its tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Draw {
    Greedy,
    Random,
    Penalised,
    Rich,
    Constrained,
}

/// What becomes of it for its reader's sake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Read,
    /// After so many turns.
    Cancel(usize),
    Drop(usize),
    /// Microseconds after it is asked for.
    Deadline(u64),
}

/// A request that makes each pass fail that computes this position of it.
#[derive(Clone, Copy, Debug)]
struct Poison {
    /// 1 or more: the session has to know the request by then.
    at: usize,
    how: Harm,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Harm {
    Lose,
    /// The session is lost when sampling is set for it.
    LoseWhenSeated,
    Fail,
    Spend,
}

/// Something that goes wrong once, whoever is concerned.
#[derive(Clone, Copy, Debug)]
enum Accident {
    /// In a pass, by its number in all sessions, when this many of its entries are computed.
    Pass(u64, usize, Fault),
    /// The session is lost in a call that is no pass, by its number.
    Call(u64),
}

impl Poison {
    /// The kind of error that the request ends with.
    fn kind(self) -> ErrorKind {
        match self.how {
            Harm::Lose | Harm::LoseWhenSeated => ErrorKind::SessionLost,
            Harm::Fail | Harm::Spend => ErrorKind::Runtime,
        }
    }
}

impl Draw {
    fn sampling(self) -> Sampling {
        let sampling = Sampling::default().with_temperature(0.9);
        match self {
            Self::Greedy => Sampling::greedy(),
            Self::Random => sampling,
            Self::Penalised => sampling.with_repetition_penalty(1.4).with_presence_penalty(0.5).with_penalty_window(16),
            Self::Rich => sampling.with_dry_multiplier(0.8).with_top_p(0.9).with_logprobs(2),
            Self::Constrained => constrained(sampling),
        }
    }
}

impl World {
    /// Without anything going wrong, and with all the cells there can be.
    fn script(&self) -> Script {
        // Texts come to an end now and then.
        Script::new()
            .with_context(self.context)
            .with_batch(self.batch)
            .with_layout(self.layout)
            .with_cuts(self.cuts)
            .with_line("e", "nd")
    }
}

impl Ask {
    fn n(&self) -> usize {
        if let What::Generate { n, .. } = self.what { n } else { 1 }
    }

    /// As it is asked for; completion `index` of it where it is asked for alone.
    fn request(&self, index: Option<usize>) -> Request {
        let mut request = Request::tokens(self.prompt.clone());
        request.adapter = self.adapter.map(str::to_owned);
        if let What::Generate { draw, seed, max_tokens, stop, n, overflow } = &self.what {
            request.max_tokens = *max_tokens;
            request.stop = stop.iter().map(|&stop| stop.to_owned()).collect();
            request.sampling = draw.sampling().with_seed(*seed);
            (request.n, request.overflow) = (*n, *overflow);
            if let Some(index) = index {
                request.sampling.seed += index as u64;
                request.n = 1;
            }
        }
        request
    }
}

fn world() -> impl Strategy<Value = World> {
    let layout = prop_oneof![3 => Just(KvLayout::Unified), 1 => Just(KvLayout::Split)];
    let cuts =
        prop_oneof![3 => Just(Cuts::Anywhere), 1 => Just(Cuts::Nowhere), 1 => (4..40_usize).prop_map(Cuts::Window)];
    let size = (8..64_usize, 1..48_usize, 1..6_usize, proptest::option::of(1..=16_usize));
    let asks = vec(ask(), 1..8);
    let accidents = prop_oneof![1 => Just(Vec::new()), 1 => vec(accident(), 1..5)];
    let broken = prop_oneof![2 => Just(Vec::new()), 1 => vec(any::<bool>(), 1..6)];
    (size, layout, cuts, settings(), asks, accidents, broken).prop_map(
        |((context, batch, sequences, share), layout, cuts, settings, mut asks, accidents, broken)| {
            // Some share of what all sequences can fill.
            let cells =
                share.filter(|_| layout == KvLayout::Unified).map(|share| (context * sequences * share / 16).max(1));
            for (id, ask) in asks.iter_mut().enumerate() {
                if ask.poison.is_some() {
                    // By this the session knows it.
                    ask.prompt.splice(0..0, [IM_START, Token(id as u32)]);
                }
                if ask.prompt.len() % 8 > 0 {
                    // The others may be too long.
                    ask.prompt.truncate(context);
                }
            }
            World { context, batch, sequences, cells, layout, cuts, settings, asks, accidents, broken }
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let step_time = prop_oneof![Just(None), Just(Some(Duration::ZERO)), Just(Some(Duration::from_secs(1)))];
    let cache = prop_oneof![Just(usize::MAX), Just(0), 1..120_usize];
    let (sequences, batch) = (proptest::option::of(1..5_usize), proptest::option::of(1..24_usize));
    (sequences, batch, step_time, cache).prop_map(|(sequences, batch, step_time, cache)| {
        let (sequences, batch) = (sequences, batch);
        Settings { sequences, batch, step_time, cache }
    })
}

fn ask() -> impl Strategy<Value = Ask> {
    let adapter = prop_oneof![12 => Just(None), 4 => Just(Some("a")), 2 => Just(Some("b")), 1 => Just(Some("unknown"))];
    let what = prop_oneof![9 => generate(), 1 => Just(What::Score)];
    let poison = prop_oneof![7 => Just(None), 1 => poison().prop_map(Some)];
    let after = prop_oneof![2 => Just(0), 1 => 0..20_usize];
    (after, prompt(), what, adapter, fate(), poison).prop_map(|(after, prompt, what, adapter, fate, poison)| Ask {
        after,
        prompt,
        what,
        adapter,
        fate,
        poison,
    })
}

fn generate() -> impl Strategy<Value = What> {
    let max_tokens = prop_oneof![8 => (0..24_usize).prop_map(Some), 1 => Just(Some(100)), 1 => Just(None)];
    let stop = prop_oneof![4 => Just(None), 1 => Just(Some("a")), 1 => Just(Some("no such text"))];
    let n = prop_oneof![4 => Just(1), 1 => 1..5_usize];
    let overflow = prop_oneof![4 => Just(Overflow::Stop), 1 => Just(Overflow::Error), 1 => Just(Overflow::Shift)];
    (draw(), 0..3_u64, max_tokens, stop, n, overflow).prop_map(|(draw, seed, max_tokens, stop, n, overflow)| {
        // A constraint has to know all of the text.
        let draw = if overflow == Overflow::Shift && draw == Draw::Constrained { Draw::Random } else { draw };
        What::Generate { draw, seed, max_tokens, stop, n, overflow }
    })
}

fn draw() -> impl Strategy<Value = Draw> {
    prop_oneof![
        2 => Just(Draw::Greedy),
        2 => Just(Draw::Random),
        1 => Just(Draw::Penalised),
        1 => Just(Draw::Rich),
        1 => Just(Draw::Constrained),
    ]
}

#[cfg(feature = "constraint")]
fn constrained(sampling: Sampling) -> Sampling {
    // Some tokens are drawn and some are forced.
    sampling
        .with_constraint(infer_core::Constraint::regex("[a-d]{1,3}: (one|other) [a-z]{1,12}").with_forced_tokens(true))
}

#[cfg(not(feature = "constraint"))]
fn constrained(sampling: Sampling) -> Sampling {
    sampling
}

/// Prompts begin alike for a while, and then go different ways.
fn prompt() -> impl Strategy<Value = Vec<Token>> {
    let text = |seed: usize, len: usize| {
        (0..len).map(move |at| Token(97 + ((at * at * 7 + at * (3 + seed) + seed * 11) % 26) as u32))
    };
    let shared = prop_oneof![1 => 1..8_usize, 2 => 1..64_usize];
    (0..2_usize, shared, 0..3_usize, 0..12_usize)
        .prop_map(move |(family, shared, own, len)| text(family, shared).chain(text(own + 2, len)).collect())
}

fn fate() -> impl Strategy<Value = Fate> {
    let deadline = prop_oneof![Just(0_u64), 0..5_000_u64];
    prop_oneof![
        6 => Just(Fate::Read),
        1 => (0..30_usize).prop_map(Fate::Cancel),
        1 => (0..30_usize).prop_map(Fate::Drop),
        1 => deadline.prop_map(Fate::Deadline),
    ]
}

fn poison() -> impl Strategy<Value = Poison> {
    let how = prop_oneof![
        3 => Just(Harm::Lose),
        1 => Just(Harm::LoseWhenSeated),
        2 => Just(Harm::Fail),
        2 => Just(Harm::Spend),
    ];
    (1..60_usize, how).prop_map(|(at, how)| Poison { at, how })
}

fn accident() -> impl Strategy<Value = Accident> {
    let fault = prop_oneof![
        2 => Just(Fault::Lose),
        2 => Just(Fault::Error(ErrorKind::Runtime)),
        1 => Just(Fault::Spend(ErrorKind::Runtime)),
        1 => Just(Fault::Error(ErrorKind::Cancelled)),
        1 => Just(Fault::Error(ErrorKind::OutOfMemory)),
    ];
    prop_oneof![
        5 => (0..60_u64, 0..4_usize, fault).prop_map(|(pass, done, fault)| Accident::Pass(pass, done, fault)),
        1 => (0..30_u64).prop_map(Accident::Call),
    ]
}

/// `PROPTEST_CASES` says how many worlds, and `PROPTEST_RNG_SEED` which ones; without it they are the same each time.
#[test]
fn in_any_world_each_text_is_as_alone() {
    let from_outside = std::env::var_os("PROPTEST_CASES").is_some();
    let mut config = Config { failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let rng = match std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        Some(seed) => TestRng::from_seed(RngAlgorithm::ChaCha, &[seed.to_le_bytes(); 4].concat()),
        None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    };
    if !from_outside {
        config.cases = 200;
    }
    let outcome = TestRunner::new_with_rng(config, rng).run(&world(), |world| {
        run::run(&world);
        Ok(())
    });
    match outcome {
        Err(TestError::Fail(why, world)) => panic!("{why}\nin {world:?}"),
        outcome => outcome.unwrap(),
    }
}
