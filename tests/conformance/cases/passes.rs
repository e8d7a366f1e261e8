//! What one pass brings, however it is cut.

use crate::setting::{BATCH, SEQUENCES, Setting, feed, filled, open, refused, row};
use infer::{Batch, ErrorKind, OpenOptions, Sampling, Want};
use kit::trace::{apart, log_softmax};

pub(crate) fn a_sequence_is_empty_and_grows_by_what_is_fed(at: &Setting<'_>) {
    let mut session = at.session();
    let seq = open(&mut *session);
    assert!(seq.is_empty() && !seq.is_spent() && session.outputs().is_empty());
    let text = at.text(0, 30);
    feed(&mut *session, &seq, &text[..12], Want::Nothing).unwrap();
    assert_eq!((seq.len(), session.outputs().len()), (12, 1));
    assert!(session.outputs().logits(0).is_none() && session.outputs().token(0).is_none());
    let logits = row(&mut *session, &seq, &text[12..]);
    assert_eq!((seq.len(), logits.len()), (30, session.limits().vocab));
    assert!(logits.iter().all(|logit| logit.is_finite()), "a logit is no number");
    // Another text leads somewhere else, from the first token on.
    let mut other = text.clone();
    other[0] = at.text(1, 1)[0];
    assert_ne!(at.alone(&other[..30]), logits);
    assert_eq!(session.limits().vocab, at.model.tokenizer().vocab().len());
    assert_eq!(session.model().vocab, at.model.info().vocab);
}

pub(crate) fn chunked_prefill_equals_whole(at: &Setting<'_>) {
    let text = at.text(0, 50);
    let whole = at.alone(&text);
    let mut session = at.session();
    for chunk in [1, 7, 32, 49] {
        let seq = open(&mut *session);
        for part in text.chunks(chunk) {
            feed(&mut *session, &seq, part, Want::Logits).unwrap();
        }
        at.near(session.outputs().logits(0).unwrap(), &whole, &format!("in pieces of {chunk}"));
    }
}

pub(crate) fn a_batch_equals_each_alone(at: &Setting<'_>) {
    let texts = [at.text(0, 20), at.text(1, 9), at.text(2, 13), at.text(3, 25)];
    let alone = texts.each_ref().map(|text| at.alone(text));
    let mut session = at.session();
    // Some are at their beginning, some in their middle, one is at its last token.
    let held = [0, 3, 12, 10];
    let mut seqs: Vec<_> = (0..SEQUENCES).map(|which| filled(&mut *session, &texts[which][..held[which]])).collect();
    let mut batch = Batch::new();
    // Not in the order they were opened in: results go by entry.
    let order = [2, 0, 3, 1];
    for which in order {
        batch.push(&seqs[which], &texts[which][held[which]..], Want::Logits);
    }
    session.decode(&batch).unwrap();
    for (entry, which) in order.into_iter().enumerate() {
        at.near(session.outputs().logits(entry).unwrap(), &alone[which], &format!("text {which}"));
    }
    // Each goes on where it is; one of them in a batch where others want nothing.
    let next = at.text(1, 2);
    batch.clear();
    batch.push(&seqs[1], &next, Want::Nothing);
    batch.push(&seqs[3], &next, Want::Logits);
    session.decode(&batch).unwrap();
    assert!(session.outputs().logits(0).is_none());
    at.near(session.outputs().logits(1).unwrap(), &at.alone(&[&texts[3][..], &next].concat()), "beside another");
    let other = seqs.remove(2);
    drop(seqs);
    // Its next cells are those that the others left, wherever they lie.
    at.goes_on_scattered(&mut *session, &other, &texts[2], "when the others are gone");
}

pub(crate) fn results_end_with_the_next_call(at: &Setting<'_>) {
    let mut session = at.session();
    let seq = open(&mut *session);
    let text = at.text(0, 8);
    let again = |what: &str, session: &mut dyn infer::Session| {
        session.truncate(&seq, 0).unwrap();
        row(session, &seq, &text);
        assert_eq!(session.outputs().len(), 1, "before {what}");
    };
    again("opening", &mut *session);
    drop(session.open(&OpenOptions::default()).unwrap());
    assert!(session.outputs().is_empty(), "after opening");
    again("a fork", &mut *session);
    drop(session.fork(&seq, text.len()).unwrap());
    assert!(session.outputs().is_empty(), "after a fork");
    again("a cut", &mut *session);
    session.truncate(&seq, text.len()).unwrap();
    assert!(session.outputs().is_empty(), "after a cut");
    again("sampling", &mut *session);
    session.sample_with(&seq, &Sampling::greedy(), &text).unwrap();
    assert!(session.outputs().is_empty(), "after sampling was set");
    again("a batch that is refused", &mut *session);
    refused(session.decode(&Batch::new()), ErrorKind::InvalidInput, "an empty batch");
    assert!(session.outputs().is_empty() && session.outputs().logits(0).is_none(), "after an error");
}

pub(crate) fn scores_are_log_softmax_step_by_step(at: &Setting<'_>) {
    let (text, other) = (at.text(0, 24), at.text(1, 12));
    let mut session = at.session();
    let seq = open(&mut *session);
    let mut wanted = vec![0.0];
    for pair in text.windows(2) {
        let row = row(&mut *session, &seq, &pair[..1]);
        wanted.push(log_softmax(&row)[pair[1].index()] as f32);
    }
    // In two passes, in company, and not first in it.
    let (seq, beside) = (open(&mut *session), filled(&mut *session, &other[..4]));
    let able = session.capabilities().score;
    let mut unsupported = 0;
    for part in [0..15, 15..text.len()] {
        let mut batch = Batch::new();
        batch.push(&beside, &other[beside.len()..beside.len() + 3], Want::Logits);
        batch.push(&seq, &text[part.clone()], Want::Score);
        if let Err(error) = session.decode(&batch) {
            assert!(!able && error.kind() == ErrorKind::Unsupported, "{error}");
            unsupported += 1;
            feed(&mut *session, &seq, &text[part], Want::Nothing).unwrap();
            continue;
        }
        let out = session.outputs();
        assert!(out.scores(0).is_empty() && out.logits(1).is_none() && out.logits(0).is_some());
        let (found, wanted) = (out.scores(1), &wanted[part]);
        let (apart, most) = (apart(found, wanted), 2.0 * at.subject.scattered + 1e-4);
        assert!(apart <= most, "{apart} apart, more than {most}: {found:?} against {wanted:?}");
    }
    assert_eq!(able, unsupported == 0, "the capability tells the truth");
    let rest = other[beside.len()..].to_vec();
    at.near_scattered(&row(&mut *session, &beside, &rest), &at.alone(&other), "the one beside");
    at.goes_on_scattered(&mut *session, &seq, &text, "the one that was scored");
}

pub(crate) fn hidden_states_do_not_depend_on_the_batch(at: &Setting<'_>) {
    let (text, other) = (at.text(0, 24), at.text(1, 10));
    let mut session = at.session();
    let seq = open(&mut *session);
    if !session.capabilities().embedding {
        refused(feed(&mut *session, &seq, &text, Want::Embedding), ErrorKind::Unsupported, "hidden states");
        return at.goes_on(&mut *session, &seq, &[], "after a refusal");
    }
    feed(&mut *session, &seq, &text, Want::Embedding).unwrap();
    let whole = session.outputs().embedding(0).expect("a hidden state was wanted").to_vec();
    assert_eq!(whole.len(), at.width());
    assert!(whole.iter().all(|number| number.is_finite()) && whole.iter().any(|&number| number != 0.0));
    let (again, beside) = (filled(&mut *session, &text[..20]), open(&mut *session));
    let mut batch = Batch::new();
    batch.push(&beside, &other, Want::Logits);
    batch.push(&again, &text[20..], Want::Embedding);
    session.decode(&batch).unwrap();
    let out = session.outputs();
    assert!(out.embedding(0).is_none() && out.logits(1).is_none());
    at.near(out.embedding(1).unwrap(), &whole, "in company");
    at.near(out.logits(0).unwrap(), &at.alone(&other), "the one beside");
    assert!(text.len() + other.len() < BATCH);
    at.goes_on(&mut *session, &again, &text, "the one that was looked into");
}
