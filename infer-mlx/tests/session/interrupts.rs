//! Passes that are interrupted leave everything as it was.

use crate::tiny::{anew, assert_same, feed, llama, logits, open, options, session, tokens};
use infer_core::{ErrorKind, Sampling, Session as _, Want};
use std::{thread, time::Duration};

#[test]
fn an_interrupt_is_a_level() {
    let model = llama();
    let mut session = session(&model);
    let (seq, text) = (open(&mut session), tokens(10, 1));
    session.interrupt().raise();
    let evals = model.mlx().evals();
    for _ in 0..2 {
        let error = feed(&mut session, &seq, &text, Want::Logits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(session.outputs().is_empty() && seq.is_empty());
    }
    assert_eq!(model.mlx().evals(), evals, "nothing was computed");
    session.interrupt().lower();
    let expected = anew(&mut session, &text);
    assert_same(&logits(&mut session, &seq, &text), &expected);
}

#[test]
fn between_pieces_of_a_batch_it_is_seen() {
    let model = llama();
    let mut session = model.session(&options().with_micro_batch(1)).unwrap();
    let (seq, text) = (open(&mut session), tokens(30, 1));
    session.sample_with(&seq, &Sampling::greedy().with_repetition_penalty(1.3), &[]).unwrap();
    feed(&mut session, &seq, &text, Want::Token).unwrap();
    let long = tokens(470, 2);
    let (interrupt, live) = (session.interrupt(), model.mlx().live());
    let raiser = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        interrupt.raise();
    });
    let evals = model.mlx().evals();
    let error = feed(&mut session, &seq, &long, Want::Token).unwrap_err();
    raiser.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(model.mlx().evals() - evals < 470, "it ended early");
    assert_eq!((seq.len(), model.mlx().live()), (30, live));
    session.interrupt().lower();

    // Sampler, keys and values are as if it had not been.
    let other = open(&mut session);
    session.sample_with(&other, &Sampling::greedy().with_repetition_penalty(1.3), &[]).unwrap();
    feed(&mut session, &other, &text, Want::Nothing).unwrap();
    let next = tokens(3, 3);
    feed(&mut session, &other, &next, Want::Logits).unwrap();
    let (row, token) = (session.outputs().logits(0).unwrap().to_vec(), session.outputs().token(0));
    feed(&mut session, &seq, &next, Want::Logits).unwrap();
    assert_same(session.outputs().logits(0).unwrap(), &row);
    assert_eq!(session.outputs().token(0), token);
}
