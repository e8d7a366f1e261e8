//! What is in use, after each operation.

use crate::{
    setting::{CONTEXT, PASS, SEQUENCES, Setting, cut, feed, filled, fork, open, refused},
    subject::{Cells, Pace},
};
use infer::{ErrorKind, Session, Want};
use std::thread;

/// What there is in all, and what a cell is.
struct Ledger {
    total: usize,
    cells: Cells,
}

impl Ledger {
    fn new(at: &Setting<'_>, session: &dyn Session) -> Self {
        let usage = session.usage();
        assert_eq!((usage.sequences, usage.sequences_free, usage.cells), (0, SEQUENCES, 0), "nothing was done yet");
        Self { total: usage.cells_free, cells: at.subject.cells }
    }

    /// Of so many sequences each holds so many positions; `shared` of them are counted more than once.
    #[track_caller]
    fn expect(&self, session: &dyn Session, held: &[usize], shared: usize) {
        let (usage, positions): (_, usize) = (session.usage(), held.iter().sum());
        let cells = match self.cells {
            Cells::Shared => positions - shared,
            Cells::Copied => positions,
            Cells::States => held.iter().filter(|&&positions| positions > 0).count(),
        };
        assert_eq!((usage.sequences, usage.sequences_free), (held.len(), SEQUENCES - held.len()), "sequences");
        assert_eq!((usage.cells, usage.cells_free), (cells, self.total - cells), "cells");
    }
}

pub(crate) fn usage_adds_up(at: &Setting<'_>) {
    let text = at.text(0, 20);
    let mut session = at.session();
    let book = Ledger::new(at, &*session);
    let parent = open(&mut *session);
    book.expect(&*session, &[0], 0);
    feed(&mut *session, &parent, &text[..12], Want::Nothing).unwrap();
    book.expect(&*session, &[12], 0);
    feed(&mut *session, &parent, &text[12..], Want::Logits).unwrap();
    book.expect(&*session, &[20], 0);
    refused(feed(&mut *session, &parent, &[], Want::Logits), ErrorKind::InvalidInput, "no token");
    book.expect(&*session, &[20], 0);
    let child = fork(&mut *session, &parent, 20).expect("a whole sequence can be forked");
    book.expect(&*session, &[20, 20], 20);
    feed(&mut *session, &child, &text[..3], Want::Nothing).unwrap();
    book.expect(&*session, &[20, 23], 20);
    // A cut gives back what nobody else holds.
    let left = if cut(&mut *session, &parent, 15) { 15 } else { 20 };
    book.expect(&*session, &[left, 23], left);
    feed(&mut *session, &parent, &text[..2], Want::Nothing).unwrap();
    book.expect(&*session, &[left + 2, 23], left);
    session.truncate(&parent, 0).unwrap();
    book.expect(&*session, &[0, 23], 0);
    let empty = open(&mut *session);
    book.expect(&*session, &[0, 23, 0], 0);
    drop(child);
    book.expect(&*session, &[0, 0], 0);
    drop((empty, parent));
    book.expect(&*session, &[], 0);
    drop(open(&mut *session));
    book.expect(&*session, &[], 0);
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
        book.expect(&*session, &[text.len()], 0);
    }
    let others: Vec<_> = (1..SEQUENCES).map(|_| filled(&mut *session, &text)).collect();
    book.expect(&*session, &[text.len(); SEQUENCES], 0);
    at.goes_on(&mut *session, &kept, &text, "the one that was kept");
    drop(others);
    book.expect(&*session, &[text.len() + 3], 0);
}

/// A pool of cells that is smaller than what all sequences may hold: a pass that does not fit is an error and changes nothing.
pub(crate) fn a_pool_without_room_says_so(at: &Setting<'_>) {
    let Some(scarce) = at.subject.scarce else { return };
    let opened = scarce();
    let mut session = opened.model.session(&at.options()).unwrap();
    let total = session.usage().cells_free;
    assert!(total < SEQUENCES * CONTEXT, "there is room for everything");
    let text = at.text(0, PASS);
    let mut seqs: Vec<_> = (1..SEQUENCES).map(|_| open(&mut *session)).collect();
    'fill: loop {
        for seq in &seqs {
            if session.usage().cells_free < PASS {
                break 'fill;
            }
            feed(&mut *session, seq, &text, Want::Nothing).unwrap();
        }
    }
    let last = open(&mut *session);
    let (held, used): (Vec<_>, _) = (seqs.iter().map(infer::Sequence::len).collect(), session.usage());
    refused(feed(&mut *session, &last, &text, Want::Logits), ErrorKind::OutOfCells, "a pass without room");
    assert!(session.outputs().is_empty() && !last.is_spent());
    assert_eq!(
        (seqs.iter().map(infer::Sequence::len).collect::<Vec<_>>(), last.len(), session.usage()),
        (held, 0, used)
    );
    // What there is room for still goes; and a sequence that goes makes room.
    feed(&mut *session, &last, &text[..used.cells_free], Want::Nothing).unwrap();
    assert_eq!(session.usage().cells_free, 0);
    refused(feed(&mut *session, &last, &text[..1], Want::Nothing), ErrorKind::OutOfCells, "no cell left");
    seqs.pop();
    let row = crate::setting::row(&mut *session, &last, &text[used.cells_free..]);
    at.near_scattered(&row, &at.alone(&text), "after room was made");
    drop((seqs, last, session, opened.model));
    (opened.afterwards)();
}
