//! Requests, cancels and faults in any order: whatever comes out is what the request would have given alone.

use super::*;
use crate::Sampling;
use infer_core::{
    AdapterSource, KvLayout,
    testing::{Cuts, Fault},
};
use test_kit::Random;

fn request(random: &mut Random, context: usize, sequences: usize) -> Request {
    let beginnings = ["The cat that sat on the mat ", "The cat that ran after the dog ", "Once ", "x"];
    let mut text = String::new();
    for _ in 0..=random.index(4) {
        text += random.pick(&beginnings);
        if random.one_in(3) {
            text += &random.index(10).to_string();
        }
    }
    text.truncate(1 + random.index(context));
    let sampling = Sampling::default().with_seed(random.below(5));
    let sampling = if random.one_in(2) { sampling.with_temperature(0.8) } else { sampling };
    let sampling = if random.one_in(4) { sampling.with_repetition_penalty(1.3) } else { sampling };
    // What it forces is fed several tokens at a time.
    let constraint = infer_core::Constraint::regex("(the quick brown fox|a lazy dog) (jumps|sleeps)[0-9]{1,30}");
    let is_constrained = cfg!(feature = "constraint") && random.one_in(4);
    let sampling = if is_constrained { sampling.with_constraint(constraint) } else { sampling };
    let mut request = Request::text(text).with_sampling(sampling);
    if !random.one_in(10) {
        request = request.with_max_tokens(random.index(40));
    }
    if random.one_in(4) {
        request = request.with_n(1 + random.index(sequences));
    }
    if random.one_in(4) {
        request = request.with_adapter(random.pick(&["a", "b"]));
    }
    request
}

/// What goes wrong, by what may come of it.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    None,
    Lost,
    Failing,
    Spending,
}

fn run(seed: u64, trouble: Trouble) {
    let mut random = Random(seed);
    let sequences = 1 + random.index(6);
    let context = 20 + random.index(100);
    let layout = random.pick(&[KvLayout::Unified, KvLayout::Unified, KvLayout::Split]);
    let cuts = random.pick(&[Cuts::Anywhere, Cuts::Anywhere, Cuts::Nowhere, Cuts::Window(30)]);
    let mut plain = Script::new().with_context(context).with_batch(1 + random.index(64));
    plain = plain.with_layout(layout).with_cuts(cuts);
    if layout == KvLayout::Unified && random.one_in(2) {
        plain = plain.with_cells(context + random.index(context * sequences));
    }
    let every = 3 + random.below(40);
    let faulty = plain.clone().with_hook(move |step| {
        let is_due = (step.pass + 7 * step.session + seed).is_multiple_of(every);
        let hit = step.done == 1 && is_due && step.pass > 0;
        match trouble {
            _ if !hit => None,
            Trouble::None => None,
            Trouble::Lost => Some(Fault::Lose),
            Trouble::Failing => Some(Fault::Error(ErrorKind::Runtime)),
            Trouble::Spending => Some(Fault::Spend(ErrorKind::Runtime)),
        }
    });
    let settings = Settings {
        sequences: random.one_in(3).then(|| 1 + random.index(sequences)),
        batch: random.one_in(3).then(|| 1 + random.index(30)),
        step_time: random.pick(&[None, Some(Duration::ZERO), Some(Duration::from_secs(1))]),
        cache: random.pick(&[0, 50, 10_000]),
    };
    let adapter = |name| AdapterSource::new(name, name);
    let options = SessionOptions::new().with_sequences(sequences).with_adapter(adapter("a")).with_adapter(adapter("b"));
    let mut kit = Kit::with_options(faulty, options, settings);
    kit.plain = ScriptedModel::new(plain);
    let most = settings.sequences.unwrap_or(sequences);
    let mut asked = Vec::new();
    for _ in 0..60 {
        match random.index(6) {
            0 | 1 => {
                let request = request(&mut random, context, most);
                asked.push((kit.ask(&request), request));
            }
            2 if random.one_in(3) && !asked.is_empty() => drop(asked.swap_remove(random.index(asked.len()))),
            3 if random.one_in(3) && !asked.is_empty() => asked[random.index(asked.len())].0.stream.cancel(),
            _ => kit.turns(random.index(8)),
        }
        if let Some((reader, _)) = asked.last_mut() {
            reader.read();
        }
    }
    kit.run();
    for (mut asked, request) in asked {
        asked.read();
        if let Some(Err(error)) = asked.end {
            let blamed = match trouble {
                Trouble::None => false,
                Trouble::Lost => error.kind() == ErrorKind::SessionLost,
                Trouble::Failing | Trouble::Spending => error.kind() == ErrorKind::Runtime,
            };
            assert!(blamed, "seed {seed}: {error}");
            continue;
        }
        assert_eq!(asked.parts.len(), request.n, "seed {seed}");
        for (seed_of, part) in (request.sampling.seed..).zip(asked.parts) {
            let ours = part.complete().unwrap_or_else(|| panic!("seed {seed}: it has not ended"));
            let sampling = request.sampling.clone().with_seed(seed_of);
            let alone = kit.solo(&request.clone().with_n(1).with_sampling(sampling));
            if ours.finish == FinishReason::Cancelled {
                assert_eq!(drawn(&ours), drawn(&alone)[..ours.tokens.len()], "seed {seed}");
            } else {
                assert_eq!(drawn(&ours), drawn(&alone), "seed {seed}");
                assert_eq!((ours.finish, ours.text), (alone.finish, alone.text), "seed {seed}");
            }
        }
    }
    kit.assert_all_is_free();
}

#[test]
fn every_text_is_as_alone() {
    (0..60).for_each(|seed| run(seed, Trouble::None));
}

#[test]
fn every_text_is_as_alone_though_sessions_are_lost() {
    (0..40).for_each(|seed| run(seed, Trouble::Lost));
}

#[test]
fn every_text_is_as_alone_though_passes_fail() {
    (0..40).for_each(|seed| run(seed, Trouble::Failing));
    (0..40).for_each(|seed| run(seed, Trouble::Spending));
}
