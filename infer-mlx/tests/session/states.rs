//! Sequences that are saved and restored.

use crate::tiny::{anew, assert_same, feed, llama, logits, model, open, options, session, tokens, windowed};
use infer_core::{
    ErrorKind, Sampling, Sequence, Session as _, Token, Want,
    state::{Fingerprint, Header, Reader, UsedAdapter, Writer},
};
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

/// A state with what `change` makes of its parts, and right checksums.
fn forged(state: &[u8], change: impl FnOnce(&mut Header, &mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = state;
    let mut reader = Reader::new(&mut bytes, 10_000).unwrap();
    let mut header = reader.header().clone();
    let mut payload = vec![0; header.payload as usize];
    reader.read_exact(&mut payload).unwrap();
    change(&mut header, &mut payload);
    header.payload = payload.len() as u64;
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header).unwrap();
    writer.write(&payload).unwrap();
    writer.finish().unwrap();
    out
}

/// The frame protects against damage. Whoever forges a state gets an error by name.
#[test]
fn a_forged_state_that_does_not_fit_is_refused() {
    // One of them with windows on some layers: of 39 tokens as of 40 these have 16.
    for model in [llama(), model("tiny-mlx-gemma3-bf16")] {
        let mut session = session(&model);
        let seq = open(&mut session);
        feed(&mut session, &seq, &tokens(40, 1), Want::Nothing).unwrap();
        let state = saved(&mut session, &seq);
        let (live, usage) = (model.mlx().live(), session.usage());
        type Change = fn(&mut Header, &mut Vec<u8>);
        let cases: [(&str, Change); 14] = [
            ("bytes for 40 positions, which take", |_, payload| payload.truncate(payload.len() - 4)),
            ("bytes for 40 positions, which take", |_, payload| payload.extend([0; 4])),
            ("bytes for 40 positions, which take", |_, payload| payload.clear()),
            ("bytes for 39 positions, which take", |header, _| header.tokens.truncate(39)),
            ("bytes for 0 positions, which take", |header, _| header.tokens.clear()),
            ("bytes for 41 positions, which take", |header, _| header.tokens.push(Token(1))),
            ("a token outside the vocabulary", |header, _| header.tokens[3] = Token(u32::MAX)),
            ("a token outside the vocabulary", |header, _| header.tokens[39] = Token(1 << 20)),
            ("of another model", |header, _| header.model = Fingerprint::of(["another"])),
            ("backend", |header, _| header.backend = "llama".to_owned()),
            ("number format", |header, _| header.shape[0].1 = "float64".to_owned()),
            ("keys of a position", |header, _| header.shape[1].1 = "1 layers of 1 heads of 1".to_owned()),
            ("", |header, _| header.shape.clear()),
            ("with the adapter \"x\"", |header, _| {
                header.adapter = Some(UsedAdapter::new("x", Fingerprint::of(["x"])));
            }),
        ];
        for (index, (why, change)) in cases.into_iter().enumerate() {
            let error = session.restore(&mut &forged(&state, change)[..]).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidInput && error.to_string().contains(why), "{index}: {error:?}");
            assert_eq!((model.mlx().live(), session.usage()), (live, usage), "{index}");
        }
        session.restore(&mut &state[..]).unwrap();
    }
}

/// Any numbers at all where keys and values are: nonsense in a sequence of its own, or an error where a token is drawn of what is no number.
#[test]
fn a_forged_state_of_other_numbers_is_nonsense_for_itself_alone() {
    for model in [llama(), windowed(), model("tiny-mlx-gemma3-bf16")] {
        let (mut session, mut random) = (session(&model), test_kit::Random(7));
        let (text, next) = (tokens(40, 1), tokens(2, 2));
        let seq = open(&mut session);
        feed(&mut session, &seq, &text, Want::Nothing).unwrap();
        let state = saved(&mut session, &seq);
        let expected = anew(&mut session, &[text, next.clone()].concat());
        for round in 0..10 {
            let forged = forged(&state, |header, payload| {
                header.tokens.iter_mut().for_each(|token| *token = Token(random.below(250) as u32));
                match round {
                    0 => payload.fill(0xFF),
                    1 => payload.fill(0),
                    2 => payload.as_chunks_mut::<4>().0.iter_mut().for_each(|x| *x = f32::INFINITY.to_le_bytes()),
                    3 => payload.as_chunks_mut::<4>().0.iter_mut().for_each(|x| *x = f32::MAX.to_le_bytes()),
                    _ => payload.iter_mut().for_each(|byte| *byte = random.below(256) as u8),
                }
            });
            let nonsense = session.restore(&mut &forged[..]).unwrap();
            logits(&mut session, &nonsense, &next);
            session.sample_with(&nonsense, &Sampling::greedy(), &[]).unwrap();
            let drawn = feed(&mut session, &nonsense, &next, Want::Token);
            assert!(drawn.is_err() || round > 0, "there is nothing to draw of keys that are no numbers");
            if let Err(error) = drawn {
                let said = error.to_string();
                assert!(error.kind() == ErrorKind::Runtime && said.contains("not a number"), "{round}: {said}");
                assert!(said.starts_with(&model.info().description), "it names the model: {said}");
            }
            let again = saved(&mut session, &nonsense);
            session.restore(&mut &again[..]).unwrap();
            let fork = session.fork(&seq, 40).unwrap();
            assert_same(&logits(&mut session, &fork, &next), &expected);
        }
    }
}
