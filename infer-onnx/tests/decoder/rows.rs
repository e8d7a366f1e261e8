//! Sequences that are computed together, and those between them.

use crate::kit::{CONTEXT, FORMS, SEQUENCES, feed, open_in, text};
use infer_core::{Batch, ErrorKind, Session as _, Token, Want};

/// Those of different lengths side by side in one pass, some of them idle, one of them full: each as alone.
#[test]
fn rows_between_others_are_none_the_worse_for_it() {
    for form in FORMS {
        let mut session = form.session();
        // The fourth is full, so that nothing can be written behind its end.
        let lengths = [9, 4, 17, CONTEXT, 1];
        let mut texts: Vec<Vec<Token>> = (0..SEQUENCES).map(|which| text(which as u64, lengths[which])).collect();
        let seqs: Vec<_> = (0..SEQUENCES).map(|_| open_in(&mut session)).collect();
        for (seq, text) in seqs.iter().zip(&texts) {
            feed(&mut session, seq, text);
        }
        let mut batch = Batch::new();
        for (step, those) in [[2, 0].as_slice(), &[1, 4], &[4, 2], &[0, 1, 2, 4], &[4]].into_iter().enumerate() {
            batch.clear();
            for &which in those {
                let next = text(100 + step as u64, 5)[which];
                batch.push(&seqs[which], &[next], Want::Logits);
                texts[which].push(next);
            }
            session.decode(&batch).unwrap();
            for (entry, &which) in those.iter().enumerate() {
                let row = session.outputs().logits(entry).unwrap().to_vec();
                form.near(&row, &texts[which], &format!("step {step}, sequence {which}"));
            }
        }
        for which in [0, 1, 2, 4] {
            let next = text(200, 2);
            texts[which].extend(&next);
            let row = feed(&mut session, &seqs[which], &next);
            form.near(&row, &texts[which], &format!("afterwards, sequence {which}"));
        }
        session.truncate(&seqs[3], CONTEXT - 1).unwrap();
        let row = feed(&mut session, &seqs[3], &texts[3][CONTEXT - 1..]);
        form.near(&row, &texts[3], "the last position of the full one again");
    }
}

/// Prompts, single tokens and scores in one pass.
#[test]
fn entries_of_every_kind_share_a_pass() {
    for form in FORMS {
        let mut session = form.session();
        let seqs: Vec<_> = (0..SEQUENCES).map(|_| open_in(&mut session)).collect();
        let mut texts: Vec<_> = (0..SEQUENCES as u64).map(|which| text(which, 3 + which as usize)).collect();
        for (seq, text) in seqs.iter().zip(&texts) {
            feed(&mut session, seq, text);
        }
        let next: Vec<_> = [1, 6, 1, 40, 2].into_iter().zip(50..).map(|(len, seed)| text(seed, len)).collect();
        let wants = [Want::Logits, Want::Logits, Want::Nothing, Want::Score, Want::Nothing];
        let mut batch = Batch::new();
        // Rows 0 and 2 run together, and row 1 between them is given a token in vain before its own six.
        for (which, want) in wants.into_iter().enumerate() {
            batch.push(&seqs[which], &next[which], want);
        }
        session.decode(&batch).unwrap();
        let scores = session.outputs().scores(3).to_vec();
        assert_eq!(scores.len(), 40);
        for (which, want) in wants.into_iter().enumerate() {
            texts[which].extend(&next[which]);
            let row = session.outputs().logits(which).map(<[f32]>::to_vec);
            assert_eq!(row.is_some(), want == Want::Logits);
            if let Some(row) = row {
                form.near(&row, &texts[which], &format!("entry {which}"));
            }
        }
        // A score is what the logits before say.
        for at in [0, 1, 31, 32, 39] {
            let before = form.alone(&texts[3][..6 + at]);
            let wanted = log_softmax(&before, next[3][at]);
            assert!(
                (scores[at] - wanted).abs() <= 2.0 * form.epsilon + 1e-4,
                "{}: {} and {wanted}",
                form.name,
                scores[at]
            );
        }
        for which in 0..SEQUENCES {
            texts[which].push(Token(65));
            let row = feed(&mut session, &seqs[which], &[Token(65)]);
            form.near(&row, &texts[which], &format!("afterwards, sequence {which}"));
        }
    }
}

fn log_softmax(row: &[f32], token: Token) -> f32 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
    (f64::from(row[token.index()] - largest) - sum.ln()) as f32
}

#[test]
fn a_pass_that_is_refused_or_interrupted_changes_nothing() {
    for form in FORMS {
        let mut session = form.session();
        let (seq, other) = (open_in(&mut session), open_in(&mut session));
        let (mut long, mut short) = (text(1, CONTEXT - 2), text(2, 5));
        feed(&mut session, &seq, &long);
        feed(&mut session, &other, &short);
        let mut batch = Batch::new();
        batch.push(&other, &text(3, 2), Want::Logits);
        batch.push(&seq, &text(3, 3), Want::Logits);
        assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::ContextFull);
        let interrupt = session.interrupt();
        interrupt.raise();
        batch.clear();
        batch.push(&other, &text(3, 2), Want::Logits);
        assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::Cancelled);
        interrupt.lower();
        assert_eq!((seq.len(), other.len()), (CONTEXT - 2, 5));
        for (seq, log) in [(&seq, &mut long), (&other, &mut short)] {
            log.extend(text(4, 2));
            let row = feed(&mut session, seq, &text(4, 2));
            form.near(&row, log, "after what was refused");
        }
    }
}
