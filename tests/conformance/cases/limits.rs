//! A session takes as much as it says, and not one more.

use crate::setting::{Setting, feed, filled, open, refused, row};
use infer::{Batch, ErrorKind, SessionOptions, Token, Want};

const CONTEXT: usize = 40;
const BATCH: usize = 16;

fn options() -> SessionOptions {
    SessionOptions::new().with_context(CONTEXT).with_batch(BATCH).with_sequences(3).with_threads(1)
}

pub(crate) fn the_context_is_what_it_says(at: &Setting<'_>) {
    let mut session = at.model.session(&options()).unwrap();
    assert_eq!(session.limits().context, CONTEXT);
    let text = at.text(0, CONTEXT + 1);
    let seq = open(&mut *session);
    for part in text[..CONTEXT - 1].chunks(BATCH) {
        feed(&mut *session, &seq, part, Want::Nothing).unwrap();
    }
    refused(feed(&mut *session, &seq, &text[CONTEXT - 1..], Want::Logits), ErrorKind::ContextFull, "two for one place");
    let last = row(&mut *session, &seq, &text[CONTEXT - 1..CONTEXT]);
    at.near(&last, &at.alone(&text[..CONTEXT]), "the last position");
    refused(feed(&mut *session, &seq, &text[CONTEXT..], Want::Logits), ErrorKind::ContextFull, "one more");
    assert_eq!(seq.len(), CONTEXT);
    // Full is not broken.
    session.truncate(&seq, 0).unwrap();
    at.goes_on(&mut *session, &seq, &[], "emptied");
}

pub(crate) fn a_batch_is_what_it_says(at: &Setting<'_>) {
    let mut session = at.model.session(&options()).unwrap();
    assert_eq!(session.limits().batch, BATCH);
    let text = at.text(0, BATCH + 1);
    let (one, two) = (open(&mut *session), open(&mut *session));
    refused(feed(&mut *session, &one, &text, Want::Logits), ErrorKind::InvalidInput, "one more than a batch");
    let mut batch = Batch::new();
    batch.push(&one, &text[..BATCH], Want::Logits);
    batch.push(&two, &text[..1], Want::Logits);
    refused(session.decode(&batch), ErrorKind::InvalidInput, "one more, of another");
    batch.clear();
    batch.push(&one, &text[..BATCH - 1], Want::Logits);
    batch.push(&two, &text[..1], Want::Logits);
    session.decode(&batch).unwrap();
    at.near(session.outputs().logits(0).unwrap(), &at.alone(&text[..BATCH - 1]), "the first of a full batch");
    at.near(session.outputs().logits(1).unwrap(), &at.alone(&text[..1]), "the last of a full batch");
}

pub(crate) fn sequences_are_as_many_as_it_says(at: &Setting<'_>) {
    let mut session = at.model.session(&options()).unwrap();
    assert_eq!(session.limits().sequences, 3);
    let text = at.text(0, 5);
    let mut seqs: Vec<_> = (0..3).map(|_| filled(&mut *session, &text)).collect();
    refused(session.open(&Default::default()), ErrorKind::TooManySequences, "a fourth");
    refused(session.fork(&seqs[0], text.len()), ErrorKind::TooManySequences, "a fork");
    assert_eq!((session.usage().sequences, session.usage().sequences_free), (3, 0));
    drop(seqs.remove(1));
    let fork = session.fork(&seqs[0], text.len()).unwrap();
    refused(session.open(&Default::default()), ErrorKind::TooManySequences, "a fourth again");
    // All of them at once, each to its last position.
    let rest = at.text(1, CONTEXT - text.len());
    for part in rest.chunks(BATCH / 3) {
        let mut batch = Batch::new();
        for seq in seqs.iter().chain([&fork]) {
            batch.push(seq, part, Want::Logits);
        }
        session.decode(&batch).unwrap();
    }
    let wanted = at.alone(&[text, rest].concat());
    for entry in 0..3 {
        at.near(session.outputs().logits(entry).unwrap(), &wanted, &format!("the last position of sequence {entry}"));
    }
}

pub(crate) fn the_vocabulary_is_what_it_says(at: &Setting<'_>) {
    let mut session = at.model.session(&options()).unwrap();
    let seq = open(&mut *session);
    let size = u32::try_from(session.limits().vocab).unwrap();
    for token in [0, size - 1] {
        assert_eq!(row(&mut *session, &seq, &[Token(token)]).len(), size as usize);
    }
    for token in [size, size + 1, i32::MAX as u32, 1 << 31, u32::MAX] {
        refused(feed(&mut *session, &seq, &[Token(token)], Want::Logits), ErrorKind::InvalidInput, "no such token");
    }
    assert_eq!(seq.len(), 2);
}

pub(crate) fn options_that_cannot_be_are_errors(at: &Setting<'_>) {
    for (what, options) in [
        ("no sequence", options().with_sequences(0)),
        ("no batch", options().with_batch(0)),
        ("more sequences than can be counted", options().with_sequences(usize::MAX)),
        ("a context that cannot be", options().with_context(usize::MAX)),
    ] {
        refused(at.model.session(&options), ErrorKind::InvalidInput, what);
    }
    // 0 is the model's own, as is saying nothing.
    let own = at.model.session(&options().with_context(0).with_batch(BATCH));
    assert_eq!(own.unwrap().limits().context, at.model.info().context);
}
