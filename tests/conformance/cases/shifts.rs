//! Positions that are taken out (a context shift), or `Unsupported`.

use crate::setting::{Setting, feed, filled, open, refused, row};
use infer::{ErrorKind, Sampling, Want};

pub(crate) fn a_shift_takes_positions_out(at: &Setting<'_>) {
    let text = at.text(0, 40);
    let mut session = at.session();
    let (seq, other) = (filled(&mut *session, &text), filled(&mut *session, &text[..9]));
    if !session.capabilities().shift {
        refused(session.shift(&seq, 4..20), ErrorKind::Unsupported, "a shift");
        return at.goes_on(&mut *session, &seq, &text, "after a refusal");
    }
    for range in [5..5, 7..41, 40..41, 0..usize::MAX, 100..200] {
        refused(session.shift(&seq, range.clone()), ErrorKind::InvalidInput, &format!("{range:?}"));
    }
    at.goes_on(&mut *session, &seq, &text, "after what was refused");
    // What lies behind everything else moves nothing: it is a cut.
    session.shift(&seq, 40..43).unwrap();
    at.goes_on(&mut *session, &seq, &text, "the last positions taken out");
    session.shift(&seq, 40..43).unwrap();

    session.sample_with(&seq, &Sampling::greedy(), &text).unwrap();
    let used = session.usage();
    session.shift(&seq, 4..20).unwrap();
    assert_eq!((seq.len(), session.usage().cells), (24, used.cells - 16));
    refused(feed(&mut *session, &seq, &text[..1], Want::Token), ErrorKind::InvalidInput, "its sampling has ended");
    // It grows on from there, and is computed the same each time.
    let again = open(&mut *session);
    feed(&mut *session, &again, &text, Want::Nothing).unwrap();
    session.shift(&again, 4..20).unwrap();
    let (found, wanted) = (row(&mut *session, &again, &text[5..8]), row(&mut *session, &seq, &text[5..8]));
    assert_eq!((seq.len(), again.len()), (27, 27));
    at.near(&found, &wanted, "the same shift of the same text");
    assert!(found.iter().all(|logit| logit.is_finite()));
    // Its next cells are among those that were given back.
    at.goes_on_scattered(&mut *session, &other, &text[..9], "the one beside");
    session.truncate(&seq, 0).unwrap();
    at.goes_on(&mut *session, &seq, &[], "emptied after a shift");
}
