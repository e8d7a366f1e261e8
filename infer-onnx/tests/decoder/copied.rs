//! What is copied of keys and values, and what is not.

use crate::kit::{Form, SEQUENCES, feed, growing, open_in, shared, text};
use infer_core::{Batch, Sampling, Session as _, Want};

/// Bytes of keys and values of a position: two numbers for each layer, head and place in it.
fn bytes_of(form: Form) -> u64 {
    let model = form.model();
    let info = model.info();
    (2 * info.layers * info.kv_heads * (info.width / info.heads) * 4) as u64
}

#[test]
fn a_step_copies_nothing() {
    for form in [shared(), growing()] {
        let mut session = form.session();
        let mut rows: Vec<_> = (0..SEQUENCES as u64)
            .map(|which| {
                let (seq, prompt) = (open_in(&mut session), text(which, 2 + 3 * which as usize));
                session.sample_with(&seq, &Sampling::greedy(), &prompt).unwrap();
                (seq, prompt)
            })
            .collect();
        let mut batch = Batch::new();
        for _ in 0..20 {
            batch.clear();
            for (seq, next) in &rows {
                batch.push(seq, next, Want::Token);
            }
            session.decode(&batch).unwrap();
            for (row, (_, next)) in rows.iter_mut().enumerate() {
                *next = vec![session.outputs().token(row).unwrap()];
            }
        }
        assert_eq!(session.kv_bytes_copied(), 0, "{}", form.name);
    }
}

#[test]
fn a_fork_copies_what_it_begins_with_where_a_cut_copies_nothing() {
    let form = shared();
    let (mut session, position) = (form.session(), bytes_of(form));
    let seq = open_in(&mut session);
    feed(&mut session, &seq, &text(1, 20));
    session.truncate(&seq, 12).unwrap();
    assert_eq!(session.kv_bytes_copied(), 0);
    let child = session.fork(&seq, 7).unwrap();
    assert_eq!(session.kv_bytes_copied(), 7 * position);
    drop(session.fork(&child, 0).unwrap());
    assert_eq!(session.kv_bytes_copied(), 7 * position);
}

#[test]
fn a_cut_copies_what_is_left_where_a_fork_shares() {
    let form = growing();
    let (mut session, position) = (form.session(), bytes_of(form));
    let seq = open_in(&mut session);
    feed(&mut session, &seq, &text(1, 20));
    let child = session.fork(&seq, 20).unwrap();
    assert_eq!(session.kv_bytes_copied(), 0);
    session.truncate(&child, 12).unwrap();
    assert_eq!(session.kv_bytes_copied(), 12 * position);
    session.truncate(&child, 0).unwrap();
    session.truncate(&seq, 20).unwrap();
    assert_eq!(session.kv_bytes_copied(), 12 * position);
    drop(session.fork(&seq, 3).unwrap());
    assert_eq!(session.kv_bytes_copied(), 15 * position);
}
