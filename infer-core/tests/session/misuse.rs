use super::*;

/// Each mistake beside a good entry: the error has its kind, names the entry, and nothing has grown.
#[test]
fn is_an_error_that_names_the_entry_and_changes_nothing() {
    let script = || Script::new().with_context(8).with_batch(16);
    let mut session = session(script(), 3);
    let mut other = super::session(script(), 1);
    let (good, bad, foreign) = (open(&mut session), open(&mut session), open(&mut other));
    let abc = tokens("abc");
    type Case<'a> = (&'a Sequence, &'a [Token], Want, ErrorKind);
    let long = tokens("123456789");
    let cases: [Case<'_>; 6] = [
        (&foreign, &abc, Want::Nothing, ErrorKind::ForeignSequence),
        (&good, &abc, Want::Nothing, ErrorKind::InvalidInput),
        (&bad, &[], Want::Nothing, ErrorKind::InvalidInput),
        (&bad, &[Token(260)], Want::Nothing, ErrorKind::InvalidInput),
        (&bad, &long, Want::Nothing, ErrorKind::ContextFull),
        (&bad, &abc, Want::Token, ErrorKind::InvalidInput), // no sampling was set
    ];
    for (seq, tokens, want, expected) in cases {
        let mut batch = Batch::new();
        batch.push(&good, &abc, Want::Nothing);
        batch.push(seq, tokens, want);
        let error = session.decode(&batch).unwrap_err();
        assert_eq!(error.kind(), expected, "{error}");
        assert!(error.to_string().contains("entry 1"), "{error}");
        assert_eq!((good.len(), bad.len(), foreign.len()), (0, 0, 0));
        assert!(session.outputs().is_empty());
    }
    assert_eq!(kind(session.decode(&Batch::new())), ErrorKind::InvalidInput);
    assert_eq!(kind(feed(&mut session, &bad, &[Token(1); 17], Want::Nothing)), ErrorKind::InvalidInput);
    assert_eq!(session.usage().cells, 0);
}

#[test]
fn what_a_session_cannot_give_is_unsupported() {
    let mut session = session(Script::new().with_capabilities(Capabilities::default()), 1);
    let seq = open(&mut session);
    for want in [Want::Logits, Want::Embedding, Want::Score] {
        assert_eq!(kind(feed(&mut session, &seq, &tokens("a"), want)), ErrorKind::Unsupported);
    }
    assert_eq!(kind(session.save(&seq, &mut Vec::new())), ErrorKind::Unsupported);
    assert_eq!(kind(session.restore(&mut &[][..])), ErrorKind::Unsupported);
}

#[test]
fn an_entry_of_a_dropped_sequence_is_stale_also_when_its_slot_is_in_use_again() {
    let mut session = session(Script::new(), 1);
    let seq = open(&mut session);
    let mut batch = Batch::new();
    batch.push(&seq, &tokens("a"), Want::Nothing);
    drop(seq);
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
    let next = open(&mut session);
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
    assert!(next.is_empty());
}

#[test]
fn an_entry_of_a_sequence_that_moved_is_stale() {
    let mut session = session(Script::new(), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("abcde"), Want::Nothing).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &tokens("f"), Want::Nothing);
    session.truncate(&seq, 3).unwrap();
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
    feed(&mut session, &seq, &tokens("xy"), Want::Nothing).unwrap();
    assert_eq!(seq.len(), 5); // as long as it was, and another sequence all the same
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
    batch.clear();
    batch.push(&seq, &tokens("f"), Want::Nothing);
    session.truncate(&seq, 5).unwrap(); // moves nothing
    session.decode(&batch).unwrap();
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence); // a second time it would append twice
    assert_eq!(seq.len(), 6);
}

#[test]
fn a_foreign_sequence_is_refused_by_every_call() {
    let mut session = session(Script::new(), 1);
    let foreign = open(&mut super::session(Script::new(), 1)); // its session is gone
    assert_eq!(kind(session.fork(&foreign, 0)), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.truncate(&foreign, 0)), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.sample_with(&foreign, &Sampling::default(), &[])), ErrorKind::ForeignSequence);
    assert_eq!(kind(session.save(&foreign, &mut Vec::new())), ErrorKind::ForeignSequence);
    assert_eq!(session.usage().sequences, 0);
}

#[test]
fn lengths_and_counts_out_of_range() {
    let mut session = session(Script::new(), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("abc"), Want::Nothing).unwrap();
    assert_eq!(kind(session.truncate(&seq, 4)), ErrorKind::InvalidInput);
    assert_eq!(kind(session.fork(&seq, 4)), ErrorKind::InvalidInput);
    let _second = open(&mut session);
    assert_eq!(kind(session.fork(&seq, 3)), ErrorKind::TooManySequences);
    assert_eq!(kind(session.open(&OpenOptions::default())), ErrorKind::TooManySequences);
    let mut adapted = OpenOptions::default();
    adapted.adapter = Some("none".into());
    assert_eq!(kind(session.open(&adapted)), ErrorKind::InvalidInput);
    assert_eq!(kind(session.sample_with(&seq, &Sampling::default(), &[Token(999)])), ErrorKind::InvalidInput);
    assert_eq!((seq.len(), session.usage().sequences, session.usage().cells), (3, 2, 3));
    let model = ScriptedModel::default();
    assert_eq!(kind(model.session(&SessionOptions::new().with_sequences(0))), ErrorKind::InvalidInput);
    assert_eq!(kind(model.session(&SessionOptions::new().with_context(usize::MAX))), ErrorKind::InvalidInput);
}
