use super::*;

#[test]
fn keeps_what_was_computed_and_ends_the_sampling() {
    let mut session = session(Script::new().with_layout(KvLayout::Unified).with_cells(40), 2);
    let seq = open(&mut session);
    session.sample_with(&seq, &Sampling::greedy(), &[]).unwrap();
    feed(&mut session, &seq, &[Token(1); 10], Want::Nothing).unwrap();
    let before = logits(&mut session, &seq, &[Token(2)]);

    session.shift(&seq, 2..6).unwrap();
    assert_eq!((seq.len(), session.usage().cells), (7, 7));
    assert_eq!(kind(feed(&mut session, &seq, &[Token(3)], Want::Token)), ErrorKind::InvalidInput);
    assert_eq!(seq.len(), 7);
    let after = logits(&mut session, &seq, &[Token(3)]);

    // The last position had all tokens in view, and still has.
    let mut log = vec![Token(1); 10];
    log.extend([Token(2), Token(3)]);
    assert_eq!(after, recomputed(&log));
    assert_ne!(before, after);
}

#[test]
fn spares_the_cells_that_a_fork_holds() {
    let mut session = session(Script::new().with_layout(KvLayout::Unified).with_cells(40), 2);
    let parent = open(&mut session);
    feed(&mut session, &parent, &[Token(1); 10], Want::Nothing).unwrap();
    let child = session.fork(&parent, 8).unwrap();
    session.shift(&parent, 0..4).unwrap();
    assert_eq!((parent.len(), child.len(), session.usage().cells), (6, 8, 10));
    drop(child); // not reaped yet, and its own cells are free already
    assert_eq!(session.usage().cells, 6);
    session.truncate(&parent, 0).unwrap();
    assert_eq!((session.usage().cells, session.usage().cells_free), (0, 40));
}

#[test]
fn of_a_wrong_range_or_where_there_is_none_is_an_error() {
    let mut session = session(Script::new(), 1);
    let seq = open(&mut session);
    feed(&mut session, &seq, &[Token(1); 10], Want::Nothing).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &[Token(1)], Want::Nothing);
    for range in [3..3, 10..11, 5..11, 11..12] {
        assert_eq!(kind(session.shift(&seq, range)), ErrorKind::InvalidInput);
    }
    session.decode(&batch).unwrap();
    batch.clear();
    batch.push(&seq, &[Token(1)], Want::Nothing);
    session.shift(&seq, 0..1).unwrap();
    feed(&mut session, &seq, &[Token(1)], Want::Nothing).unwrap();
    assert_eq!(seq.len(), 11);
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);

    let none = Capabilities::default();
    let mut session = super::session(Script::new().with_capabilities(none), 1);
    let seq = open(&mut session);
    feed(&mut session, &seq, &[Token(1); 4], Want::Nothing).unwrap();
    assert_eq!(kind(session.shift(&seq, 0..1)), ErrorKind::Unsupported);
}
