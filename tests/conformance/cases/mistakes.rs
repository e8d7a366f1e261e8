//! What is wrong is an error by name, and harms nobody.

use crate::setting::{BATCH, CONTEXT, SEQUENCES, Setting, feed, filled, open, refused};
use infer::{Batch, ErrorKind, OpenOptions, Sampling, Session, Token, Want};

pub(crate) fn bad_batches_are_errors_and_harm_nothing(at: &Setting<'_>) {
    let text = at.text(0, 20);
    let mut session = at.session();
    let mut elsewhere = at.session();
    let foreign = filled(&mut *elsewhere, &text[..3]);
    let seq = filled(&mut *session, &text);
    let bystander = filled(&mut *session, &text[..7]);
    let beyond = Token(u32::try_from(session.limits().vocab).unwrap());
    let used = session.usage();
    // Each beside an entry that is right, before and behind it.
    type Push<'a> = Box<dyn Fn(&mut Batch) + 'a>;
    let next = &text[..2];
    let bad: Vec<(&str, ErrorKind, Push<'_>)> = vec![
        ("an entry without tokens", ErrorKind::InvalidInput, Box::new(|batch| _ = batch.push(&seq, &[], Want::Logits))),
        (
            "a token beyond the vocabulary",
            ErrorKind::InvalidInput,
            Box::new(|batch| _ = batch.push(&seq, &[text[0], beyond], Want::Logits)),
        ),
        (
            "the largest token",
            ErrorKind::InvalidInput,
            Box::new(|batch| _ = batch.push(&seq, &[Token(u32::MAX)], Want::Nothing)),
        ),
        (
            "two entries of a sequence",
            ErrorKind::InvalidInput,
            Box::new(|batch| {
                batch.push(&seq, next, Want::Logits);
                batch.push(&seq, next, Want::Logits);
            }),
        ),
        (
            "more than a batch takes",
            ErrorKind::InvalidInput,
            Box::new(|batch| _ = batch.push(&seq, &at.text(1, BATCH), Want::Logits)),
        ),
        (
            "a sequence of another session",
            ErrorKind::ForeignSequence,
            Box::new(|batch| _ = batch.push(&foreign, next, Want::Logits)),
        ),
        (
            "a token without sampling",
            ErrorKind::InvalidInput,
            Box::new(|batch| _ = batch.push(&seq, next, Want::Token)),
        ),
    ];
    for (what, kind, push) in &bad {
        for good_first in [true, false] {
            let mut batch = Batch::new();
            if good_first {
                batch.push(&bystander, next, Want::Logits);
            }
            push(&mut batch);
            if !good_first {
                batch.push(&bystander, next, Want::Logits);
            }
            refused(session.decode(&batch), *kind, what);
            assert_eq!((seq.len(), bystander.len(), session.usage()), (20, 7, used), "{what}");
            assert!(session.outputs().is_empty(), "{what}");
        }
    }
    refused(session.decode(&Batch::new()), ErrorKind::InvalidInput, "no entry");
    at.goes_on(&mut *session, &seq, &text, "the one the mistakes were about");
    at.goes_on(&mut *session, &bystander, &text[..7], "the one beside");
    at.goes_on(&mut *elsewhere, &foreign, &text[..3], "the one elsewhere");
}

pub(crate) fn bad_handles_are_errors_and_harm_nothing(at: &Setting<'_>) {
    let text = at.text(0, 20);
    let (mut session, mut elsewhere) = (at.session(), at.session());
    let foreign = filled(&mut *elsewhere, &text[..3]);
    let seq = filled(&mut *session, &text);
    let sampling = Sampling::greedy();
    refused(session.fork(&foreign, 1), ErrorKind::ForeignSequence, "a fork");
    refused(session.truncate(&foreign, 1), ErrorKind::ForeignSequence, "a cut");
    refused(session.sample_with(&foreign, &sampling, &text), ErrorKind::ForeignSequence, "sampling");
    let unknown = {
        let mut options = OpenOptions::default();
        options.adapter = Some("nobody".into());
        session.open(&options)
    };
    refused(unknown, ErrorKind::InvalidInput, "an adapter that is not there");

    // A batch that was made for a sequence as it was.
    let mut batch = Batch::new();
    let again = |batch: &mut Batch, seq| {
        batch.clear();
        batch.push(seq, &text[..2], Want::Logits);
    };
    again(&mut batch, &seq);
    feed(&mut *session, &seq, &text[..1], Want::Nothing).unwrap();
    refused(session.decode(&batch), ErrorKind::StaleSequence, "it has grown");
    again(&mut batch, &seq);
    session.truncate(&seq, 0).unwrap();
    feed(&mut *session, &seq, &text, Want::Nothing).unwrap();
    feed(&mut *session, &seq, &text[..1], Want::Nothing).unwrap();
    refused(session.decode(&batch), ErrorKind::StaleSequence, "it was cut and has grown to the same length");
    again(&mut batch, &seq);
    drop(seq);
    refused(session.decode(&batch), ErrorKind::StaleSequence, "it is gone");
    let others: Vec<_> = (0..SEQUENCES).map(|_| filled(&mut *session, &text)).collect();
    refused(session.decode(&batch), ErrorKind::StaleSequence, "others have its place");
    for other in &others {
        at.goes_on(&mut *session, other, &text, "one of the others");
    }
    assert_eq!(foreign.len(), 3);
    outlives(session, at);
}

/// A handle is of no more use when its session is gone, and no harm.
fn outlives(mut session: Box<dyn Session>, at: &Setting<'_>) {
    drop(session);
    session = at.session();
    let mut gone = at.session();
    let seq = open(&mut *gone);
    drop(gone);
    assert!(seq.len() <= CONTEXT);
    refused(session.fork(&seq, 0), ErrorKind::ForeignSequence, "a session that is gone");
}
