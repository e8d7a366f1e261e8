//! What the host sampler leaves of a row of logits is what llama.cpp's own samplers leave: the same tokens, with probabilities
//! within 1e-5.
//!
//! There is one difference of arithmetic. llama.cpp adds up the probabilities of a whole row in `f32`, one after the other, and we
//! in `f64`; over 49,152 tokens its sum is off by some 1e-4 ([`Row::rounding`] computes by how much for a row). Where that
//! decides, the rule is: its tokens are between those that we keep for a limit that is lower, and for one that is higher, by this
//! rounding. Nothing but the cut may differ, and where no sum is involved nothing at all.

mod chains;
mod compare;
mod rows;

use compare::Left;
use infer::{DryBreakers, Sampling, Special, Token};
use kit::{prompts, samplers::Samplers};
use rows::Row;
use std::path::Path;

/// A prompt of some words.
const SHORT: [usize; 1] = [0];
/// One that repeats itself.
const LONG: [usize; 1] = [3];

fn peer() -> (Samplers, Box<dyn infer::Model>) {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let peer = Samplers::start(folder, &path).unwrap_or_else(|error| panic!("{error}"));
    (peer, infer::open(&path).unwrap())
}

fn theirs(peer: &mut Samplers, sampling: &Sampling, row: &Row, breakers: &[&str]) -> Left {
    Left::new(peer.apply(sampling, &row.history, breakers).unwrap(), row)
}

fn small() -> impl Iterator<Item = Row> {
    [0.5, 1.0, 3.0, 6.0].into_iter().zip(1..).map(|(spread, seed)| rows::random(2000, spread, seed))
}

/// At temperature 1, which leaves probabilities as they are.
fn plain() -> Sampling {
    Sampling::default().with_temperature(1.0)
}

fn repetition(repetition: f32, frequency: f32, presence: f32, window: usize) -> Sampling {
    plain()
        .with_repetition_penalty(repetition)
        .with_frequency_penalty(frequency)
        .with_presence_penalty(presence)
        .with_penalty_window(window)
}

fn dry(multiplier: f32, base: f32, allowed: usize, window: usize) -> Sampling {
    plain().with_dry_multiplier(multiplier).with_dry_base(base).with_dry_allowed_length(allowed).with_dry_window(window)
}

/// Steps that compare logits with a limit, or change them: there is nothing to be rounded otherwise.
fn exact() -> Vec<Sampling> {
    let mut all = vec![plain(), Sampling::default(), plain().with_logit_bias(Token(7), 3.0)];
    all.extend([1, 2, 40, 128, 129, 1000, 100_000].map(|k| plain().with_top_k(k)));
    all.extend([0.0, 0.001, 0.05, 0.2, 0.9, 1.0].map(|p| plain().with_min_p(p)));
    all.extend([0.1, 0.7, 1.3, 3.0].map(|t| plain().with_temperature(t)));
    all.extend([0.0, 0.002, 0.01, 0.05, 0.1, 0.3, 0.5, 0.6].map(|t| plain().with_xtc(1.0, t)));
    all.extend([plain().with_xtc(0.0, 0.01), Sampling::default().with_xtc(1.0, 0.05)]);
    all.extend([
        repetition(1.1, 0.0, 0.0, 64),
        repetition(0.8, 0.0, 0.0, usize::MAX),
        repetition(1.0, 0.5, 0.0, 1000),
        repetition(1.0, 0.0, 0.7, 10),
        repetition(1.3, -0.1, 0.3, 1),
        repetition(1.3, 0.1, 0.3, 0),
    ]);
    all.extend([
        dry(0.8, 1.75, 2, 64),
        dry(0.8, 1.75, 1, usize::MAX),
        dry(1.5, 1.2, 0, 30),
        dry(0.3, 1.0, 3, 1000),
        dry(2.0, 3.0, 5, 77),
        dry(0.8, 1.75, 2, 1),
        dry(0.8, 1.75, 2, 0),
    ]);
    all
}

#[test]
fn each_step_that_compares_is_the_same() {
    let (mut peer, model) = peer();
    for row in small().chain(rows::real(&*model, &LONG)) {
        peer.row(&row.logits).unwrap();
        for sampling in exact() {
            let same = Left::ours(&sampling, &row).check_same(&theirs(&mut peer, &sampling, &row, &[]));
            same.unwrap_or_else(|why| panic!("{}: {sampling:?}: {why}", row.name));
        }
    }
}

#[test]
fn breakers_found_in_the_vocabulary_are_the_same() {
    let (mut peer, model) = peer();
    let tokenizer = model.tokenizer();
    let mut text = Vec::new();
    tokenizer.encode(&prompts::logbook(8), Special::NONE, &mut text).unwrap();
    // Only what is in the text can go on repeating.
    let mut row = rows::random(tokenizer.vocab().len(), 2.0, 1);
    let logits = row.logits.iter_mut().zip(0..);
    logits.filter(|(_, id)| !text.contains(&Token(*id))).for_each(|(logit, _)| *logit = f32::NEG_INFINITY);
    peer.row(&row.logits).unwrap();
    // Of one token and of several, each of which begins within many tokens.
    for (breakers, allowed) in
        [(&["\n", " ships before", "; "][..], 1), (&[" ships before"], 2), (&["oon;"], 1), (&DryBreakers::COMMON, 2)]
    {
        let found = DryBreakers::of_texts(breakers, &*tokenizer).unwrap();
        let mut differs = 0;
        for len in (1..text.len()).step_by(3) {
            row.history = text[..len].to_vec();
            let none = dry(0.8, 1.2, allowed, 500);
            let sampling = none.clone().with_dry_breakers(found.clone());
            let ours = Left::ours(&sampling, &row);
            let same = ours.check_same(&theirs(&mut peer, &sampling, &row, breakers));
            same.unwrap_or_else(|why| panic!("{len} tokens, {breakers:?}: {why}"));
            differs += usize::from(ours.check_probabilities(&Left::ours(&none, &row)).is_err());
        }
        assert!(differs >= 3, "{breakers:?} make a difference at {differs} places only");
    }
}

/// `sampling` with limits that are lower and higher by the row's rounding, so that fewer tokens are left, and more.
fn moved(sampling: &Sampling, rounding: f64) -> [Sampling; 2] {
    [1.0 - rounding, 1.0 + rounding].map(|by| {
        let times = |limit: f32| (f64::from(limit) * by) as f32;
        let share = |limit: f32| if limit < 1.0 { times(limit).min(1.0) } else { limit };
        sampling
            .clone()
            .with_top_p(share(sampling.top_p))
            .with_typical_p(share(sampling.typical_p))
            .with_top_n_sigma(times(sampling.top_n_sigma))
    })
}

#[test]
fn each_step_that_adds_up_is_the_same_but_for_rounding() {
    let (mut peer, model) = peer();
    let shares = [0.0f32, 0.01, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999];
    let [top_p, typical] =
        [Sampling::with_top_p, Sampling::with_typical_p].map(|with| shares.map(|p| with(plain(), p)));
    let top_n_sigma = [0.1, 0.5, 1.0, 2.0, 3.0, 5.0].map(|n| plain().with_top_n_sigma(n));
    for row in small().chain(rows::real(&*model, &SHORT)).chain([rows::random(49_152, 3.0, 9)]) {
        peer.row(&row.logits).unwrap();
        let (rounding, (entropy, off)) = (row.rounding(), row.surprise());
        let mut equal = 0;
        for sampling in top_p.iter().chain(&typical).chain(&top_n_sigma) {
            let (ours, theirs) = (Left::ours(sampling, &row), theirs(&mut peer, sampling, &row, &[]));
            let [fewer, more] = moved(sampling, rounding).map(|sampling| Left::ours(&sampling, &row));
            let (mut missing, mut added) = (fewer.without(&theirs), theirs.without(&more));
            if sampling.typical_p < 1.0 {
                // The entropy is such a sum too. So much nearer or further, in nats, a token can be for them.
                let blur = rounding * (1.0 + entropy);
                let furthest = |left: &Left| left.tokens().map(|token| off[token.index()]).fold(0.0, f64::max);
                missing.retain(|token| off[token.index()] < furthest(&fewer) - blur);
                added.retain(|token| off[token.index()] > furthest(&more) + blur);
            }
            let context = format!("{}: {sampling:?}", row.name);
            assert_eq!(missing, [], "{context}: they left out more than rounding explains");
            assert_eq!(added, [], "{context}: they kept more than rounding explains");
            ours.check_probabilities(&theirs).unwrap_or_else(|why| panic!("{context}: {why}"));
            equal += usize::from(ours.has_the_tokens_of(&theirs));
        }
        // In a small row hardly anything is rounded. In a large one the sum is, and the further down a cut is the less a token
        // adds to it.
        let least = if row.logits.len() <= 2000 { 20 } else { 12 };
        assert!(equal >= least, "{}: the very same tokens in {equal} of 22 cases", row.name);
    }
}

#[test]
fn the_temperature_that_moves_is_the_same_but_for_rounding() {
    let (mut peer, model) = peer();
    for row in small().chain(rows::real(&*model, &SHORT)) {
        peer.row(&row.logits).unwrap();
        for (temperature, range, exponent) in
            [(0.8, 0.5, 1.0), (1.0, 1.0, 2.0), (0.5, 2.0, 0.3), (0.0, 1.5, 1.0), (2.0, 0.1, 0.0)]
        {
            for k in [0, 1, 2, 50, 1000] {
                let sampling = plain().with_temperature(temperature).with_dynatemp(range, exponent).with_top_k(k);
                let (ours, theirs) = (Left::ours(&sampling, &row), theirs(&mut peer, &sampling, &row, &[]));
                let context = format!("{}: {sampling:?}", row.name);
                let same = ours.check_same(&theirs);
                if k > 0 || row.logits.len() <= 2000 {
                    same.unwrap_or_else(|why| panic!("{context}: {why}"));
                    continue;
                }
                // The entropy of a large row is rounded, and with it the temperature: apart from that it is the same.
                let [our, their] = [&ours, &theirs].map(|left| left.temperature(&row.logits));
                assert!((their / our - 1.0).abs() < row.rounding(), "{context}: temperature {our} against {their}");
                let at_theirs = Left::ours(&plain().with_temperature(their as f32), &row);
                at_theirs.check_same(&theirs).unwrap_or_else(|why| panic!("{context}: {why}"));
            }
        }
    }
}
