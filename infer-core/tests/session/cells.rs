use super::*;

#[test]
fn are_shared_by_forks_in_one_pool_and_copied_between_parts() {
    for (layout, after_fork) in [(KvLayout::Unified, 10), (KvLayout::Split, 18)] {
        let mut session = session(Script::new().with_layout(layout).with_cells(30), 3);
        let parent = open(&mut session);
        feed(&mut session, &parent, &[Token(1); 10], Want::Nothing).unwrap();
        let child = session.fork(&parent, 8).unwrap();
        assert_eq!((session.usage().cells, session.usage().cells_free), (after_fork, 30 - after_fork));
        drop(parent); // not reaped yet, and already free
        assert_eq!(session.usage().cells, 8);
        let grandchild = session.fork(&child, 8).unwrap();
        drop((child, grandchild));
        assert_eq!((session.usage().cells, session.usage().cells_free), (0, 30));
        open(&mut session);
        assert_eq!((session.usage().cells, session.usage().cells_free), (0, 30));
    }
}

#[test]
fn that_run_out_are_an_error_and_nothing_has_grown() {
    for (layout, takes) in [(KvLayout::Unified, 12), (KvLayout::Split, 6)] {
        let mut session = session(Script::new().with_layout(layout).with_cells(12), 2);
        let (a, b) = (open(&mut session), open(&mut session));
        assert_eq!(kind(feed(&mut session, &a, &[Token(1); 13], Want::Nothing)), ErrorKind::OutOfCells);
        assert_eq!((a.len(), session.usage().cells), (0, 0));
        feed(&mut session, &a, &vec![Token(1); takes], Want::Nothing).unwrap();
        assert_eq!(kind(feed(&mut session, &a, &[Token(1)], Want::Nothing)), ErrorKind::OutOfCells);
        session.truncate(&a, takes - 1).unwrap();
        feed(&mut session, &a, &[Token(1)], Want::Nothing).unwrap();
        drop(a);
        feed(&mut session, &b, &vec![Token(1); takes], Want::Nothing).unwrap();
    }
}

#[test]
fn are_laid_out_and_counted_as_the_options_of_the_session_say() {
    let model = ScriptedModel::new(Script::new().with_layout(KvLayout::Split).with_cells(30));
    let options = SessionOptions::new().with_sequences(3);
    let pool = options.clone().with_layout(KvLayout::Unified).with_cells(20);
    let mut session = model.scripted(&pool).unwrap();
    let parent = open(&mut session);
    feed(&mut session, &parent, &[Token(1); 10], Want::Nothing).unwrap();
    let _child = session.fork(&parent, 8).unwrap();
    assert_eq!((session.usage().cells, session.usage().cells_free), (10, 10));
    let error = model.scripted(&options.with_cells(20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("unified"), "{error}");
}
