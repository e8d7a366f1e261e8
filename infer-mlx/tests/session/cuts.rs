//! Forks and cuts: what is left is what computing it anew would give.

use crate::tiny::{anew, assert_same, feed, llama, logits, model, open, session, tokens, windowed};
use infer_core::{Batch, ErrorKind, Session as _, Token, Want};

fn joined(parts: &[&[Token]]) -> Vec<Token> {
    parts.concat()
}

#[test]
fn parent_and_fork_go_on_side_by_side() {
    for model in [llama(), windowed()] {
        for together in [false, true] {
            let (mut session, mut reference) = (session(&model), session(&model));
            let (text, a, b) = (tokens(90, 1), tokens(5, 2), tokens(4, 3));
            let parent = open(&mut session);
            feed(&mut session, &parent, &text, Want::Nothing).unwrap();
            let fork = session.fork(&parent, text.len()).unwrap();
            assert_eq!(fork.len(), text.len());
            for at in 0..4 {
                let mut batch = Batch::new();
                batch.push(&parent, &a[at..=at], Want::Logits);
                if !together {
                    session.decode(&batch).unwrap();
                    let expected = anew(&mut reference, &joined(&[&text, &a[..=at]]));
                    assert_same(session.outputs().logits(0).unwrap(), &expected);
                    batch.clear();
                }
                let entry = batch.push(&fork, &b[at..=at], Want::Logits);
                session.decode(&batch).unwrap();
                let expected = anew(&mut reference, &joined(&[&text, &b[..=at]]));
                assert_same(session.outputs().logits(entry).unwrap(), &expected);
            }
            drop(parent);
            let all = joined(&[&text, &b, &a]);
            assert_same(&logits(&mut session, &fork, &a), &anew(&mut reference, &all));
        }
    }
}

#[test]
fn a_fork_at_any_length_begins_with_just_that() {
    let model = llama();
    let (mut session, mut reference) = (session(&model), session(&model));
    let (text, next) = (tokens(270, 1), tokens(3, 2));
    let parent = open(&mut session);
    feed(&mut session, &parent, &text, Want::Nothing).unwrap();
    for len in [0, 1, 100, 255, 256, 257, 270] {
        let fork = session.fork(&parent, len).unwrap();
        assert_same(&logits(&mut session, &fork, &next), &anew(&mut reference, &joined(&[&text[..len], &next])));
    }
    assert_same(&logits(&mut session, &parent, &next), &anew(&mut reference, &joined(&[&text, &next])));
    let error = session.fork(&parent, 274).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn what_is_cut_off_leaves_no_trace() {
    for model in [llama(), windowed()] {
        let (mut session, mut reference) = (session(&model), session(&model));
        let (text, next) = (tokens(60, 1), tokens(30, 2));
        let seq = open(&mut session);
        feed(&mut session, &seq, &text, Want::Nothing).unwrap();
        for len in [59, 40, 7, 0] {
            session.truncate(&seq, len).unwrap();
            let expected = anew(&mut reference, &joined(&[&text[..len], &next]));
            assert_same(&logits(&mut session, &seq, &next), &expected);
            session.truncate(&seq, len).unwrap();
        }
    }
}

/// A cut sequence that shares its buffers must not write over what its fork still has.
#[test]
fn a_cut_and_regrown_parent_does_not_touch_its_fork() {
    let model = llama();
    let (mut session, mut reference) = (session(&model), session(&model));
    let (text, other, next) = (tokens(50, 1), tokens(20, 2), tokens(2, 3));
    let parent = open(&mut session);
    feed(&mut session, &parent, &text, Want::Nothing).unwrap();
    let fork = session.fork(&parent, 50).unwrap();
    session.truncate(&parent, 30).unwrap();
    feed(&mut session, &parent, &other, Want::Nothing).unwrap();
    assert_same(&logits(&mut session, &fork, &next), &anew(&mut reference, &joined(&[&text, &next])));
    let regrown = joined(&[&text[..30], &other, &next]);
    assert_same(&logits(&mut session, &parent, &next), &anew(&mut reference, &regrown));
}

/// 16 positions are seen; the buffers of 256 rows are exchanged for others when they are full.
#[test]
fn a_window_that_went_on_cannot_go_back() {
    let model = windowed();
    let mut session = session(&model);
    assert!(!session.capabilities().truncate && !session.capabilities().fork);
    let text = tokens(300, 1);
    let seq = open(&mut session);
    for (at, &token) in text.iter().enumerate() {
        feed(&mut session, &seq, &[token], Want::Logits).unwrap();
        if [200, 256, 257, 299].contains(&at) {
            let row = session.outputs().logits(0).unwrap().to_vec();
            assert_same(&row, &anew(&mut session, &text[..=at]));
        }
    }
    for outcome in [session.truncate(&seq, 100), session.fork(&seq, 100).map(drop)] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("sliding window"), "{error}");
    }
    assert_eq!(seq.len(), 300);
    let fork = session.fork(&seq, 300).unwrap();
    session.truncate(&fork, 290).unwrap();
    let next = tokens(3, 2);
    let expected = anew(&mut session, &joined(&[&text[..290], &next]));
    assert_same(&logits(&mut session, &fork, &next), &expected);
    session.truncate(&seq, 0).unwrap();
    let expected = anew(&mut session, &next);
    assert_same(&logits(&mut session, &seq, &next), &expected);
}

#[test]
fn a_window_as_wide_as_the_context_is_none() {
    let model = model("tiny-mlx-mistral-windows");
    let narrow = model.session(&crate::tiny::options().with_context(16)).unwrap();
    assert!(narrow.capabilities().truncate && narrow.capabilities().fork);
}
