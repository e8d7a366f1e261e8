//! Sequences that are saved and restored.

use crate::tiny::{anew, assert_same, feed, llama, logits, model, open, options, session, tokens, windowed};
use infer_core::{ErrorKind, Sequence, Session as _, Want};
use infer_mlx::Session;

fn saved(session: &mut Session, seq: &Sequence) -> Vec<u8> {
    let mut state = Vec::new();
    session.save(seq, &mut state).unwrap();
    state
}

#[test]
fn a_restored_sequence_goes_on_as_the_saved_one() {
    for model in [llama(), windowed(), model("tiny-mlx-gemma3-bf16")] {
        let (mut session, mut other) = (session(&model), session(&model));
        for len in [1, 15, 16, 17, 255, 256, 300] {
            let (text, next) = (tokens(len, 1), tokens(2, 2));
            let seq = open(&mut session);
            feed(&mut session, &seq, &text, Want::Nothing).unwrap();
            let state = saved(&mut session, &seq);
            let restored = other.restore(&mut &state[..]).unwrap();
            assert_eq!(restored.len(), len);
            let again = saved(&mut other, &restored);
            assert!(again == state, "the same bytes");
            let goes_on = logits(&mut other, &restored, &next);
            assert_eq!(goes_on, logits(&mut session, &seq, &next), "the same numbers");
            // The token before is computed again.
            let restored = other.restore(&mut &state[..]).unwrap();
            feed(&mut other, &restored, &next, Want::Score).unwrap();
            assert!(other.outputs().scores(0).iter().all(|score| score.is_finite()));
        }
    }
}

/// 16 positions are seen, and buffers of 256 rows are exchanged for others: as far back as a sequence can be cut, it can be saved, and the
/// token before can be computed again.
#[test]
fn a_sequence_that_was_cut_can_be_saved_wherever_its_window_begins() {
    let model = windowed();
    let (mut session, mut other) = (session(&model), session(&model));
    let (text, next) = (tokens(258, 1), tokens(2, 2));
    let mut cuts = Vec::new();
    for cut in (200..=258).rev() {
        let seq = open(&mut session);
        for part in [&text[..200], &text[200..256], &text[256..257], &text[257..]] {
            feed(&mut session, &seq, part, Want::Nothing).unwrap();
        }
        let fork = session.fork(&seq, cut);
        match session.truncate(&seq, cut) {
            Ok(()) => cuts.push(cut),
            Err(error) => {
                assert_eq!((error.kind(), fork.unwrap_err().kind()), (ErrorKind::Unsupported, ErrorKind::Unsupported));
                continue;
            }
        }
        let expected = anew(&mut other, &[&text[..cut], &next].concat());
        for seq in [&seq, &fork.unwrap()] {
            let state = saved(&mut session, seq);
            let restored = other.restore(&mut &state[..]).unwrap();
            assert_same(&logits(&mut other, &restored, &next), &expected);
            feed(&mut session, seq, &next, Want::Score).unwrap();
            assert!(session.outputs().scores(0).iter().all(|score| score.is_finite()));
        }
    }
    assert_eq!(cuts, [258, 257, 256], "where the buffers were exchanged it can still be cut");
}

#[test]
fn an_empty_sequence_can_be_saved() {
    let model = llama();
    let mut session = session(&model);
    let seq = open(&mut session);
    let state = saved(&mut session, &seq);
    let restored = session.restore(&mut &state[..]).unwrap();
    let next = tokens(3, 1);
    let expected = anew(&mut session, &next);
    assert_same(&logits(&mut session, &restored, &next), &expected);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_left() {
    let model = llama();
    let mut session = session(&model);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(40, 1), Want::Nothing).unwrap();
    let state = saved(&mut session, &seq);
    let (live, usage) = (model.mlx().live(), session.usage());
    let refused = |session: &mut Session, state: &[u8], says: &str| {
        let error = session.restore(&mut &state[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    };
    for at in (0..state.len()).step_by(97) {
        let mut damaged = state.clone();
        damaged[at] ^= 4;
        refused(&mut session, &damaged, "");
        refused(&mut session, &state[..at], "");
    }
    assert_eq!((model.mlx().live(), session.usage()), (live, usage));
    let other = crate::tiny::model("tiny-mlx-qwen3");
    refused(&mut crate::tiny::session(&other), &state, "of another model");
    let mut short = model.session(&options().with_context(39)).unwrap();
    assert_eq!(short.restore(&mut &state[..]).unwrap_err().kind(), ErrorKind::ContextFull);
}

#[test]
fn an_interrupt_stops_saving_and_restoring() {
    let model = llama();
    let mut session = session(&model);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(40, 1), Want::Nothing).unwrap();
    let state = saved(&mut session, &seq);
    session.interrupt().raise();
    assert_eq!(session.save(&seq, &mut Vec::new()).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(session.restore(&mut &state[..]).unwrap_err().kind(), ErrorKind::Cancelled);
    session.interrupt().lower();
    session.restore(&mut &state[..]).unwrap();
}
