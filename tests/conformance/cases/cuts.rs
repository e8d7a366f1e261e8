//! Forks and cuts: as computing it again, or `Unsupported`.

use crate::setting::{BATCH, Setting, cut, feed, filled, fork, open, refused, row};
use infer::{ErrorKind, Want};

/// The lengths to go back to from `held`.
fn lengths(held: usize) -> [usize; 6] {
    [0, 1, held / 2, held - 2, held - 1, held]
}

pub(crate) fn fork_equals_recompute(at: &Setting<'_>) {
    let text = at.text(0, 24);
    let mut session = at.session();
    let parent = filled(&mut *session, &text);
    for len in lengths(text.len()) {
        let Some(child) = fork(&mut *session, &parent, len) else { continue };
        at.goes_on(&mut *session, &child, &text[..len], &format!("a fork at {len}"));
    }
    at.goes_on(&mut *session, &parent, &text, "the parent of all");
}

pub(crate) fn truncate_equals_recompute(at: &Setting<'_>) {
    let text = at.text(0, 24);
    let mut session = at.session();
    for len in lengths(text.len()) {
        let seq = filled(&mut *session, &text);
        let held = if cut(&mut *session, &seq, len) { len } else { text.len() };
        at.goes_on(&mut *session, &seq, &text[..held], &format!("cut to {len}"));
    }
}

/// Further back than a sliding window or a short memory reaches.
pub(crate) fn cuts_far_back_equal_recompute(at: &Setting<'_>) {
    let text = at.text(1, 90);
    let mut session = at.session();
    // Fed in pieces: what is given up is given up between passes.
    let seq = open(&mut *session);
    for part in text.chunks(18) {
        feed(&mut *session, &seq, part, Want::Nothing).unwrap();
    }
    for len in [8, 33, 57, 60, 85, 89] {
        if let Some(child) = fork(&mut *session, &seq, len) {
            at.goes_on(&mut *session, &child, &text[..len], &format!("a fork at {len} of 90"));
        }
    }
    for len in [88, 70, 40, 5] {
        let before = seq.len();
        let held = if cut(&mut *session, &seq, len) { len } else { before };
        let Some(child) = fork(&mut *session, &seq, held) else { panic!("a whole sequence can be forked") };
        at.goes_on(&mut *session, &child, &text[..held], &format!("cut from {before} to {len}"));
    }
}

pub(crate) fn forks_and_parents_leave_each_other_alone(at: &Setting<'_>) {
    let (text, own) = (at.text(0, 20), at.text(1, 6));
    let mut session = at.session();
    let parent = filled(&mut *session, &text);
    let child = fork(&mut *session, &parent, text.len()).expect("a whole sequence can be forked");
    let grandchild = fork(&mut *session, &child, text.len()).expect("a fork can be forked");
    // Each grows by its own, in one batch and beside each other.
    let mut batch = infer::Batch::new();
    for (seq, tokens) in [(&grandchild, &own[..2]), (&parent, &own[2..3]), (&child, &own[3..])] {
        batch.push(seq, tokens, Want::Logits);
    }
    session.decode(&batch).unwrap();
    let rows: Vec<_> = (0..3).map(|entry| session.outputs().logits(entry).unwrap().to_vec()).collect();
    let wanted = [&own[..2], &own[2..3], &own[3..]].map(|tokens| [&text[..], tokens].concat());
    for (row, wanted) in rows.iter().zip(&wanted) {
        at.near(row, &at.alone(wanted), "three of one prefix");
    }
    // The parent goes, and its slot is another's.
    drop(parent);
    let other = at.text(2, 15);
    let stranger = filled(&mut *session, &other);
    at.goes_on(&mut *session, &child, &wanted[2], "the child of a parent that is gone");
    session.truncate(&child, 0).unwrap();
    at.goes_on(&mut *session, &grandchild, &wanted[0], "the grandchild of a child that was emptied");
    at.goes_on(&mut *session, &stranger, &other, "who came in their place");
    at.goes_on(&mut *session, &child, &[], "the emptied one");
}

pub(crate) fn cuts_that_cannot_be_are_errors(at: &Setting<'_>) {
    let text = at.text(0, 10);
    let mut session = at.session();
    let seq = filled(&mut *session, &text);
    let used = session.usage();
    for len in [11, BATCH, usize::MAX] {
        refused(session.fork(&seq, len), ErrorKind::InvalidInput, "a fork beyond the end");
        refused(session.truncate(&seq, len), ErrorKind::InvalidInput, "a cut beyond the end");
    }
    assert_eq!((seq.len(), session.usage()), (10, used));
    row(&mut *session, &seq, &text[..1]);
    let empty = open(&mut *session);
    session.truncate(&empty, 0).unwrap();
    let child = session.fork(&empty, 0).unwrap();
    refused(session.truncate(&empty, 1), ErrorKind::InvalidInput, "a cut of nothing");
    at.goes_on(&mut *session, &child, &[], "a fork of nothing");
}
