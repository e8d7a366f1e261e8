use super::*;

#[test]
fn recurrent() {
    let cancel = |step: &infer_core::testing::Step<'_>| {
        (step.pass == 1).then_some(())?;
        (step.done == 1).then_some(Fault::Error(ErrorKind::Cancelled))
    };
    let mut session = session(Script::new().with_cuts(Cuts::Nowhere).with_hook(cancel), 3);
    assert!(!session.capabilities().truncate && !session.capabilities().fork);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("abc"), Want::Nothing).unwrap();
    assert_eq!(kind(session.truncate(&seq, 2)), ErrorKind::Unsupported);
    assert_eq!(kind(session.fork(&seq, 2)), ErrorKind::Unsupported);
    assert_eq!(seq.len(), 3);
    let (whole, empty) = (session.fork(&seq, 3).unwrap(), session.fork(&seq, 0).unwrap());
    assert_eq!((whole.len(), empty.len()), (3, 0));
    session.truncate(&whole, 3).unwrap();
    session.truncate(&whole, 0).unwrap();
    assert_eq!(kind(feed(&mut session, &seq, &tokens("d"), Want::Nothing)), ErrorKind::Cancelled);
    assert!(seq.is_spent() && !whole.is_spent());
}

#[test]
fn with_a_sliding_window() {
    let mut session = session(Script::new().with_cuts(Cuts::Window(4)), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("abcd"), Want::Nothing).unwrap();
    drop(session.fork(&seq, 2).unwrap());
    session.truncate(&seq, 3).unwrap();
    feed(&mut session, &seq, &tokens("de"), Want::Nothing).unwrap();
    assert_eq!(kind(session.truncate(&seq, 4)), ErrorKind::Unsupported);
    assert_eq!(kind(session.fork(&seq, 4)), ErrorKind::Unsupported);
    assert_eq!(session.fork(&seq, 5).unwrap().len(), 5);
    session.truncate(&seq, 0).unwrap();
    assert_eq!(logits(&mut session, &seq, &tokens("xy")), recomputed(&tokens("xy")));
}
