//! How likely each token was after those before it.

use crate::{
    DECODERS,
    linked::{LAYOUTS, alone, assert_near, feed, model, open, options, session, text},
    wanting, words,
};
use infer_core::{Batch, ErrorKind, KvLayout, Sequence, Session as _, Token, Want};
use infer_llama::{Model, Session, SessionOptions};

fn scores(session: &mut Session, seq: &Sequence, tokens: &[Token]) -> Vec<f32> {
    wanting(session, seq, tokens, Want::Score).unwrap();
    assert!(session.outputs().logits(0).is_none() && session.outputs().token(0).is_none());
    session.outputs().scores(0).to_vec()
}

/// What the scores must be, from the logits after each token.
fn expected_scores(model: &Model, options: &SessionOptions, tokens: &[Token]) -> Vec<f32> {
    let mut session = session(model, options);
    let seq = open(&mut session);
    let mut scores = vec![0.0];
    for pair in tokens.windows(2) {
        let row = feed(&mut session, &seq, &pair[..1]);
        let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
        scores.push((f64::from(row[pair[1].index()]) - sum.ln()) as f32);
    }
    scores
}

#[test]
fn scores_are_those_of_the_logits_before_each_token() {
    let tokens = text(1, 80);
    for name in DECODERS {
        let model = model(name);
        for layout in LAYOUTS {
            let options = options().with_layout(layout);
            let expected = expected_scores(&model, &options, &tokens);
            let mut session = session(&model, &options);
            let seq = open(&mut session);
            assert_near(&scores(&mut session, &seq, &tokens), &expected, &format!("{name}, {layout:?}: at once"));
            assert_eq!((seq.len(), session.usage().cells_free > 0), (80, true));

            let pieces = open(&mut session);
            let first = scores(&mut session, &pieces, &tokens[..50]);
            assert_near(&first, &expected[..50], name);
            let second = wanting(&mut session, &pieces, &tokens[50..], Want::Score);
            if session.capabilities().score || name == "tiny-gemma3" {
                second.unwrap();
                assert_near(session.outputs().scores(0), &expected[50..], &format!("{name}, {layout:?}: in pieces"));
            } else {
                assert_eq!(second.unwrap_err().kind(), ErrorKind::Unsupported, "{name}");
                assert_eq!(pieces.len(), 50);
            }
        }
    }
}

#[test]
fn scores_stand_beside_other_wants() {
    let model = model("tiny-llama");
    for layout in LAYOUTS {
        let options = options().with_layout(layout);
        let mut session = session(&model, &options);
        let (a, b, c) = (open(&mut session), open(&mut session), open(&mut session));
        let cells = session.usage().cells;
        let mut batch = Batch::new();
        batch.push(&a, &text(1, 40), Want::Logits);
        batch.push(&b, &text(2, 50), Want::Score);
        batch.push(&c, &text(3, 45), Want::Embedding);
        session.decode(&batch).unwrap();
        let out = session.outputs();
        assert_near(out.logits(0).unwrap(), &alone(&model, &options, &text(1, 40)), "logits");
        assert_near(out.scores(1), &expected_scores(&model, &options, &text(2, 50)), "scores");
        assert_eq!((out.scores(0).len(), out.scores(2).len(), out.logits(1), out.embedding(0)), (0, 0, None, None));
        assert_eq!(out.embedding(2).unwrap().len(), model.info().width);
        assert_eq!(session.usage().cells, cells + 135);

        // The last token of `b` is fed again, in a cell of its own where a fork holds the old one.
        let child = session.fork(&b, 50).map(|child| (child, session.usage().cells));
        assert_eq!(child.unwrap_err().kind(), ErrorKind::TooManySequences);
        drop(c);
        let child = session.fork(&b, 50).unwrap();
        let before = session.usage().cells;
        scores(&mut session, &b, &text(4, 5));
        let again = usize::from(layout == KvLayout::Unified);
        assert_eq!(session.usage().cells, before + 5 + again, "{layout:?}");
        let of_child = alone(&model, &options, &[text(2, 50), text(5, 2)].concat());
        assert_near(&feed(&mut session, &child, &text(5, 2)), &of_child, "the fork");
        let of_b = alone(&model, &options, &[text(2, 50), text(4, 5), text(5, 2)].concat());
        assert_near(&feed(&mut session, &b, &text(5, 2)), &of_b, "the scored one");
    }
}

#[test]
fn a_scoring_pass_that_is_stopped_or_finds_no_room_has_changed_nothing() {
    let model = model("tiny-llama");
    let options = options().with_layout(KvLayout::Unified).with_cells(256);
    let mut session = session(&model, &options);
    let (seq, other) = (open(&mut session), open(&mut session));
    let (prompt, more) = (text(1, 100), text(2, 3));
    feed(&mut session, &seq, &prompt);
    feed(&mut session, &other, &text(3, 100));
    let before = session.usage();
    let error = wanting(&mut session, &seq, &text(4, 57), Want::Score).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfCells);
    let interrupt = session.interrupt();
    interrupt.raise();
    assert_eq!(wanting(&mut session, &seq, &more, Want::Score).unwrap_err().kind(), ErrorKind::Cancelled);
    interrupt.lower();
    assert_eq!((session.usage(), seq.len(), seq.is_spent()), (before, 100, false));
    let whole = alone(&model, &options, &[&prompt[..], &more].concat());
    assert_near(&feed(&mut session, &seq, &more), &whole, "afterwards");
}

/// A fork holds the cell of the token that is fed again: there must be one more.
#[test]
fn scoring_beside_a_fork_takes_one_cell_more() {
    let model = model("tiny-llama");
    let mut session = session(&model, &options().with_layout(KvLayout::Unified).with_cells(256));
    let seq = open(&mut session);
    feed(&mut session, &seq, &text(1, 200));
    let child = session.fork(&seq, 200).unwrap();
    let other = open(&mut session);
    feed(&mut session, &other, &text(2, 55));
    assert_eq!(session.usage().cells_free, 1);
    let error = wanting(&mut session, &seq, &text(3, 1), Want::Score).unwrap_err();
    assert_eq!((error.kind(), seq.len(), session.usage().cells_free), (ErrorKind::OutOfCells, 200, 1));
    drop(child);
    wanting(&mut session, &seq, &text(3, 1), Want::Score).unwrap();
    assert_eq!(session.usage().cells_free, 0);
}

/// The last token of each is fed again in a cell of its own, since a fork holds the old one: also where the pass fails.
#[test]
fn scoring_several_that_share_their_last_token_finds_room_for_all_or_changes_nothing() {
    let model = model("tiny-llama");
    let options = options().with_layout(KvLayout::Unified).with_cells(256).with_sequences(6);
    let mut session = session(&model, &options);
    let prompt = text(1, 254);
    let first = open(&mut session);
    feed(&mut session, &first, &prompt);
    let mut sequences: Vec<Sequence> = (0..4).map(|_| session.fork(&first, prompt.len()).unwrap()).collect();
    sequences.push(first);
    let before = session.usage();
    assert_eq!(before.cells_free, 2);
    let mut batch = Batch::new();
    for seq in &sequences {
        batch.push(seq, &text(2, 1), Want::Score);
    }
    assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::OutOfCells);
    assert_eq!(session.usage(), before);
    assert!(sequences.iter().all(|seq| seq.len() == 254 && !seq.is_spent()));
    // One has room for its last token and the new one.
    assert_eq!(scores(&mut session, &sequences[0], &text(2, 1)).len(), 1);
}

#[test]
fn a_likely_text_scores_higher_than_an_unlikely_one() {
    let smollm2 = model("smollm2");
    let score = |text: &str| {
        let tokens = words(&smollm2, text);
        let mut session = session(&smollm2, &options());
        let seq = open(&mut session);
        *scores(&mut session, &seq, &tokens).last().unwrap()
    };
    let (likely, unlikely) = (score("The capital of France is Paris"), score("The capital of France is purple"));
    assert!(likely > -2.5 && unlikely < likely - 3.0, "{likely} and {unlikely}");
}
