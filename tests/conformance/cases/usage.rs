//! What is in use, after each operation.

use crate::{
    setting::{SEQUENCES, Setting, cut, feed, filled, fork, open},
    subject::Pace,
};
use infer::{ErrorKind, Session, Want};
use std::thread;

struct Ledger {
    total: usize,
    one_cell: bool,
}

impl Ledger {
    fn new(at: &Setting<'_>, session: &dyn Session) -> Self {
        let usage = session.usage();
        assert_eq!((usage.sequences, usage.sequences_free, usage.cells), (0, SEQUENCES, 0), "nothing was done yet");
        Self { total: usage.cells_free, one_cell: at.subject.one_cell }
    }

    /// So many sequences, `holding` of which are not empty and have these cells, if a position has one.
    #[track_caller]
    fn expect(&self, session: &dyn Session, sequences: usize, holding: usize, cells: usize) {
        let cells = if self.one_cell { holding } else { cells };
        let usage = session.usage();
        assert_eq!((usage.sequences, usage.sequences_free), (sequences, SEQUENCES - sequences), "sequences");
        assert_eq!((usage.cells, usage.cells_free), (cells, self.total - cells), "cells");
    }
}

pub(crate) fn usage_adds_up(at: &Setting<'_>) {
    let (text, shares) = (at.text(0, 20), at.subject.shares);
    let mut session = at.session();
    let book = Ledger::new(at, &*session);
    let parent = open(&mut *session);
    book.expect(&*session, 1, 0, 0);
    feed(&mut *session, &parent, &text[..12], Want::Nothing).unwrap();
    book.expect(&*session, 1, 1, 12);
    feed(&mut *session, &parent, &text[12..], Want::Logits).unwrap();
    book.expect(&*session, 1, 1, 20);
    assert_eq!(feed(&mut *session, &parent, &[], Want::Logits).unwrap_err().kind(), ErrorKind::InvalidInput);
    book.expect(&*session, 1, 1, 20);
    // A fork has the cells of its parent, or as many of its own.
    let child = fork(&mut *session, &parent, 20).expect("a whole sequence can be forked");
    let copied = if shares { 0 } else { 20 };
    book.expect(&*session, 2, 2, 20 + copied);
    feed(&mut *session, &child, &text[..3], Want::Nothing).unwrap();
    book.expect(&*session, 2, 2, 23 + copied);
    // A cut gives back what nobody else holds.
    let given_back = if cut(&mut *session, &parent, 15) && !shares { 5 } else { 0 };
    book.expect(&*session, 2, 2, 23 + copied - given_back);
    session.truncate(&parent, 0).unwrap();
    book.expect(&*session, 2, 1, 23);
    let empty = open(&mut *session);
    book.expect(&*session, 3, 1, 23);
    drop(child);
    book.expect(&*session, 2, 0, 0);
    drop((empty, parent));
    book.expect(&*session, 0, 0, 0);
    drop(open(&mut *session));
    book.expect(&*session, 0, 0, 0);
}

/// Before the session has looked, and after.
pub(crate) fn dropped_handles_free_cells_on_any_thread(at: &Setting<'_>) {
    let text = at.text(0, 12);
    let mut session = at.session();
    let book = Ledger::new(at, &*session);
    let kept = filled(&mut *session, &text);
    let rounds = if at.subject.pace == Pace::Quick { 20 } else { 4 };
    for round in 0..rounds {
        let gone: Vec<_> = (0..SEQUENCES - 2).map(|_| filled(&mut *session, &text[..5])).collect();
        let shared = fork(&mut *session, &kept, text.len()).expect("a whole sequence can be forked");
        let dropper = thread::spawn(move || drop((gone, shared)));
        if round % 2 == 0 {
            // While a pass runs.
            feed(&mut *session, &kept, &text[..1], Want::Nothing).unwrap();
            session.truncate(&kept, 0).unwrap();
            feed(&mut *session, &kept, &text, Want::Nothing).unwrap();
        }
        dropper.join().unwrap();
        book.expect(&*session, 1, 1, text.len());
    }
    let others: Vec<_> = (1..SEQUENCES).map(|_| filled(&mut *session, &text)).collect();
    book.expect(&*session, SEQUENCES, SEQUENCES, SEQUENCES * text.len());
    at.goes_on(&mut *session, &kept, &text, "the one that was kept");
    drop(others);
    book.expect(&*session, 1, 1, text.len() + 3);
}
