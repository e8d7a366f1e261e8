//! Passes that are stopped from another thread.

use crate::{
    setting::{Setting, feed, filled, open, refused, row},
    subject::Pace,
};
use infer::{Batch, ErrorKind, Sequence, Session, Token, Want};
use std::{
    thread,
    time::{Duration, Instant},
};

pub(crate) fn an_interrupt_is_a_level(at: &Setting<'_>) {
    let text = at.text(0, 10);
    let mut session = at.session();
    let seq = filled(&mut *session, &text);
    let interrupt = session.interrupt();
    thread::spawn({
        let interrupt = interrupt.clone();
        move || interrupt.raise()
    })
    .join()
    .unwrap();
    // Raised before the pass begins, it stops it, and the next one; sequences are as they were.
    for _ in 0..2 {
        refused(feed(&mut *session, &seq, &text[..2], Want::Logits), ErrorKind::Cancelled, "while it is raised");
        assert!(session.outputs().is_empty());
    }
    assert!(!seq.is_spent(), "nothing was begun");
    interrupt.raise();
    interrupt.lower();
    at.goes_on(&mut *session, &seq, &text, "after it was lowered");
    // It is the session's own, and may outlive it.
    interrupt.raise();
    let mut other = at.session();
    let seq = open(&mut *other);
    row(&mut *other, &seq, &text);
    drop(session);
    interrupt.lower();
}

/// Two sequences are in the pass, one is not.
struct Scene {
    texts: [Vec<Token>; 3],
    held: [usize; 3],
}

impl Scene {
    fn seqs(&self, session: &mut dyn Session) -> [Sequence; 3] {
        [0, 1, 2].map(|which| filled(session, &self.texts[which][..self.held[which]]))
    }

    fn batch(&self, seqs: &[Sequence; 3]) -> Batch {
        let mut batch = Batch::new();
        for which in [0, 1] {
            batch.push(&seqs[which], &self.texts[which][self.held[which]..], Want::Logits);
        }
        batch
    }
}

pub(crate) fn an_interrupt_at_any_moment_leaves_the_documented_state(at: &Setting<'_>) {
    let (moments, long) = match at.subject.pace {
        Pace::Quick => (40, 70),
        Pace::Slow => (5, 40),
    };
    let scene = Scene { texts: [at.text(0, long), at.text(1, 9), at.text(2, 12)], held: [6, 8, 12] };
    let wanted = [0, 1].map(|which| at.alone(&scene.texts[which]));
    let mut session = at.session();
    let begun = Instant::now();
    let seqs = scene.seqs(&mut *session);
    session.decode(&scene.batch(&seqs)).unwrap();
    let pass = begun.elapsed();
    drop(seqs);
    let mut stopped = 0;
    for moment in 0..moments {
        let seqs = scene.seqs(&mut *session);
        let (batch, used) = (scene.batch(&seqs), session.usage());
        let outcome = stopped_after(&mut *session, &batch, pass.mul_f64(f64::from(moment) / f64::from(moments)));
        match outcome {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "moment {moment}: {error}");
                stopped += 1;
                if !as_before(&mut *session, &scene, &seqs, used) {
                    at.goes_on(&mut *session, &seqs[2], &scene.texts[2], "the one that was not in the pass");
                    continue;
                }
                session.decode(&batch).unwrap_or_else(|error| panic!("moment {moment}, the same batch again: {error}"));
            }
        }
        for which in [0, 1] {
            let row = session.outputs().logits(which).unwrap();
            at.near(row, &wanted[which], &format!("moment {moment}, text {which}"));
        }
        if moment % 8 == 0 {
            at.goes_on(&mut *session, &seqs[2], &scene.texts[2], "the one that was not in the pass");
        }
    }
    assert!(stopped > 0, "the interrupt that is raised at once stops the pass");
}

/// Runs the pass, with the interrupt raised after `wait` by another thread, and lowered when it is over.
fn stopped_after(session: &mut dyn Session, batch: &Batch, wait: Duration) -> infer::Result<()> {
    let interrupt = session.interrupt();
    if wait.is_zero() {
        interrupt.raise();
        let outcome = session.decode(batch);
        interrupt.lower();
        return outcome;
    }
    thread::scope(|scope| {
        let begun = Instant::now();
        let raiser = scope.spawn({
            let interrupt = interrupt.clone();
            move || {
                while begun.elapsed() < wait {
                    thread::yield_now();
                }
                interrupt.raise();
            }
        });
        let outcome = session.decode(batch);
        raiser.join().unwrap();
        interrupt.lower();
        outcome
    })
}

/// Whether everything is as before the pass; else the sequences of the pass are spent, and everything else is as before.
fn as_before(session: &mut dyn Session, scene: &Scene, seqs: &[Sequence; 3], used: infer::Usage) -> bool {
    assert!(session.outputs().is_empty());
    assert_eq!((seqs[2].len(), seqs[2].is_spent()), (scene.held[2], false), "it was not in the pass");
    let spent = [seqs[0].is_spent(), seqs[1].is_spent()];
    if spent == [false, false] {
        assert_eq!([seqs[0].len(), seqs[1].len()], scene.held[..2], "a failed pass has grown nothing");
        assert_eq!(session.usage(), used);
        return true;
    }
    assert!(!session.capabilities().truncate, "a model that can go back spends nothing");
    for seq in seqs[..2].iter().filter(|seq| seq.is_spent()) {
        refused(feed(session, seq, &scene.texts[0][..1], Want::Nothing), ErrorKind::StaleSequence, "a spent sequence");
        refused(session.fork(seq, 0), ErrorKind::StaleSequence, "a fork of a spent sequence");
        refused(session.truncate(seq, 0), ErrorKind::StaleSequence, "a cut of a spent sequence");
    }
    false
}
