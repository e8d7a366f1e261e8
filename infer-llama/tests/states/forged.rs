//! States with right checksums that somebody made up.

use crate::{
    DECODERS, assert_refused,
    linked::{assert_near, feed, model, open, text},
    restored, some_state,
};
use infer_core::{
    ErrorKind, Session as _, Token,
    state::{Header, Reader, Writer},
};

/// A state with right checksums, whose payload is another.
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

fn set(payload: &mut [u8], at: usize, number: i32) {
    payload[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// The frame protects against damage. Whoever forges a state gets an error or a sequence that is nonsense, and nothing worse.
#[test]
fn a_forged_state_is_refused_or_nonsense() {
    // Of a cache: streams, cells, and of each cell position, number of sequences, sequence.
    let (mut session, _seq, state) = some_state(&model("tiny-llama"), &text(1, 30));
    let numbers = [
        (0, 2, "n_stream mismatch"),
        (0, -1, "out of range"),
        (4, 100_000, "not enough cells"),
        (4, -1, "out of range"),
        (4, 29, "checksum"),
        (8, -1, "out of range"),
        (8, i32::MIN, "out of range"),
        (8, i32::MAX, "out of range"),
        (8, i32::MAX - 1, "does not end at the position"),
        (12, 0, "seq_id-agnostic"),
        (12, 1000, "seq_id-agnostic"),
        (8 + 29 * 12, 5, "does not end at the position"),
        (8 + 30 * 12, 1, "transposition"),
        (12 + 30 * 12, 7, "layer count"),
        (16 + 30 * 12, 9, "key type"),
    ];
    let before = session.usage();
    for (at, number, why) in numbers {
        let state = forged(&state, |_, payload| set(payload, at, number));
        let error = restored(&mut session, &state).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput, "{number} at {at}: {error:?}");
        assert!(why == "checksum" || format!("{error:?}").contains(why), "{number} at {at}: {error:?}, not {why:?}");
        assert_eq!(session.usage(), before, "{number} at {at}");
    }
    let longer = forged(&state, |_, payload| payload.extend([0; 100]));
    assert_refused(&mut session, &longer, ErrorKind::InvalidInput, "longer than what it describes");
    let shorter = forged(&state, |_, payload| payload.truncate(5000));
    assert_refused(&mut session, &shorter, ErrorKind::InvalidInput, "shorter than what it describes");
    let token = forged(&state, |header, _| header.tokens[3] = Token(100_000));
    assert_refused(&mut session, &token, ErrorKind::InvalidInput, "outside the vocabulary");
    let tokens = forged(&state, |header, _| header.tokens.truncate(29));
    assert_refused(&mut session, &tokens, ErrorKind::InvalidInput, "does not end at the position");
    // All cells are there still: the session holds as much as it could before.
    let noise = forged(&state, |_, payload| payload[2000..].iter_mut().for_each(|byte| *byte = !*byte));
    drop(restored(&mut session, &noise));
    let full: Vec<Token> = text(5, 226);
    let seq = open(&mut session);
    feed(&mut session, &seq, &full);

    // Of a recurrent memory: cells, and of each position and number of sequences.
    let (mut session, _seq, state) = some_state(&model("tiny-mamba"), &text(1, 30));
    for (at, number) in [(0, 2), (0, -1), (0, i32::MAX), (0, 0), (4, -1), (4, 5), (8, 1), (8, i32::MAX)] {
        let state = forged(&state, |_, payload| set(payload, at, number));
        let error = restored(&mut session, &state).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{number} at {at}: {error:?}");
    }
    restored(&mut session, &state).unwrap();
}

/// Anything at all in the payload, with right checksums: an error or nonsense, whatever the model's memory is.
#[test]
fn states_forged_at_random_do_no_harm() {
    for name in DECODERS {
        let model = model(name);
        let (mut session, seq, state) = some_state(&model, &text(1, 40));
        let mut random = test_kit::Random(17);
        for round in 0..200 {
            let forged = forged(&state, |_, payload| {
                // Every other time among the numbers that stand before the keys.
                let len = if round % 2 == 0 { payload.len().min(600) } else { payload.len() } as u64;
                for _ in 0..=random.below(3) {
                    let at = random.below(len - 4) as usize & !3;
                    let number =
                        [random.next() as i32, random.below(64) as i32, -1, i32::MAX][random.below(4) as usize];
                    set(payload, at, number);
                }
            });
            let Ok(nonsense) = restored(&mut session, &forged) else { continue };
            let mut batch = infer_core::Batch::new();
            batch.push(&nonsense, &text(2, 3), infer_core::Want::Logits);
            session.decode(&batch).unwrap();
        }
        // The others are what they were, and every cell is there.
        let more = text(2, 3);
        let again = restored(&mut session, &state).unwrap();
        assert_near(&feed(&mut session, &again, &more), &feed(&mut session, &seq, &more), name);
        drop((seq, again));
        assert_eq!(session.usage().cells, 0, "{name}");
        let seqs = [open(&mut session), open(&mut session), open(&mut session)];
        for seq in &seqs {
            feed(&mut session, seq, &text(6, 250));
        }
    }
}
