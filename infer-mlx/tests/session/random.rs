//! Sequences that are opened, forked, cut, saved, interrupted and dropped in any order hold what their tokens say.

use crate::tiny::{NEAR, anew, feed, llama, open, options, tokens, windowed};
use infer_core::{Batch, ErrorKind, Sequence, Session as _, Token, Want};
use infer_mlx::{Model, Session};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    Open,
    /// Of which, how much of it.
    Fork(usize, f64),
    Cut(usize, f64),
    Drop(usize),
    SaveAndRestore(usize),
    /// Each of these grows by so many tokens, in one batch; or would, if the pass were not interrupted.
    Feed(Vec<(usize, usize)>, bool),
}

fn act() -> impl Strategy<Value = Act> {
    let which = 0usize..8;
    let count = prop_oneof![3 => Just(1usize), 2 => 2usize..20, 1 => 100usize..180];
    prop_oneof![
        2 => Just(Act::Open),
        3 => (which.clone(), 0.0..1.2).prop_map(|(seq, share)| Act::Fork(seq, share)),
        2 => (which.clone(), 0.0..1.2).prop_map(|(seq, share)| Act::Cut(seq, share)),
        1 => which.clone().prop_map(Act::Drop),
        1 => which.clone().prop_map(Act::SaveAndRestore),
        8 => (prop::collection::vec((which, count), 1..4), prop::bool::weighted(0.2)).prop_map(|(fed, fails)| Act::Feed(fed, fails)),
    ]
}

/// A session, and what its sequences should hold.
struct World {
    session: Session,
    reference: Session,
    held: Vec<(Sequence, Vec<Token>)>,
    seed: u32,
}

impl World {
    fn new(model: &Model) -> Self {
        // Small pieces, so that some passes take several evaluations.
        let session = model.session(&options().with_micro_batch(64)).unwrap();
        Self { session, reference: crate::tiny::session(model), held: Vec::new(), seed: 0 }
    }

    fn act(&mut self, act: Act) {
        let Self { session, held, .. } = self;
        let (full, count) = (held.len() == session.limits().sequences, held.len());
        match act {
            Act::Open if !full => held.push((open(session), Vec::new())),
            Act::Fork(which, share) if count > 0 && !full => {
                let (parent, tokens) = &held[which % count];
                let len = ((tokens.len() as f64 * share) as usize).min(tokens.len());
                let tokens = tokens[..len].to_vec();
                if let Some(fork) = kept(session.fork(parent, len)) {
                    held.push((fork, tokens));
                }
            }
            Act::Cut(which, share) if count > 0 => {
                let (seq, tokens) = &mut held[which % count];
                let len = ((tokens.len() as f64 * share) as usize).min(tokens.len());
                if kept(session.truncate(seq, len)).is_some() {
                    tokens.truncate(len);
                }
            }
            Act::Drop(which) if count > 0 => drop(held.swap_remove(which % count)),
            Act::SaveAndRestore(which) if count > 0 && !full => {
                let (seq, tokens) = &held[which % count];
                let (mut state, tokens) = (Vec::new(), tokens.clone());
                session.save(seq, &mut state).unwrap();
                held.push((session.restore(&mut &state[..]).unwrap(), tokens));
            }
            Act::Feed(fed, fails) => self.feed(fed, fails),
            _ => {}
        }
        for (seq, tokens) in &self.held {
            assert_eq!(seq.len(), tokens.len());
        }
    }

    fn feed(&mut self, fed: Vec<(usize, usize)>, fails: bool) {
        let Self { session, reference, held, seed } = self;
        let (mut batch, mut fresh) = (Batch::new(), Vec::new());
        for (which, count) in fed {
            let which = which % held.len().max(1);
            let Some((seq, tokens)) = held.get(which) else { continue };
            let room = session.limits().context - tokens.len();
            if room >= count && fresh.iter().all(|(other, _)| *other != which) {
                *seed += 1;
                let new = self::tokens(count, *seed);
                batch.push(seq, &new, Want::Logits);
                fresh.push((which, new));
            }
        }
        if fresh.is_empty() {
            return;
        }
        if fails {
            session.interrupt().raise();
            assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::Cancelled);
            session.interrupt().lower();
        }
        session.decode(&batch).unwrap();
        for (entry, (which, new)) in fresh.into_iter().enumerate() {
            let tokens = &mut held[which].1;
            tokens.extend(new);
            let expected = anew(reference, tokens);
            let row = session.outputs().logits(entry).unwrap();
            let apart = row.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(apart <= NEAR, "{apart} apart after {} tokens", tokens.len());
        }
    }
}

/// What was done; `None` where a window does not allow it.
fn kept<T>(outcome: infer_core::Result<T>) -> Option<T> {
    match outcome {
        Ok(done) => Some(done),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            None
        }
    }
}

fn run(model: &Model, acts: Vec<Act>) {
    let live = model.mlx().live();
    let mut world = World::new(model);
    acts.into_iter().for_each(|act| world.act(act));
    let seq = open(&mut world.reference);
    feed(&mut world.reference, &seq, &tokens(1, 0), Want::Nothing).unwrap();
    drop((seq, world));
    assert_eq!(model.mlx().live(), live, "nothing is left");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn of_a_model_that_keeps_everything(acts in prop::collection::vec(act(), 1..40)) {
        run(&llama(), acts);
    }

    #[test]
    fn of_a_model_with_windows(acts in prop::collection::vec(act(), 1..40)) {
        run(&windowed(), acts);
    }
}
