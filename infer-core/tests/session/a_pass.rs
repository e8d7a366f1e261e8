use super::*;

/// Two sequences of three positions each, and a batch that makes them grow.
fn two(session: &mut Scripted) -> (Sequence, Sequence, Batch) {
    let (a, b) = (open(session), open(session));
    let mut batch = Batch::new();
    batch.push(&a, &tokens("abc"), Want::Nothing);
    batch.push(&b, &tokens("xyz"), Want::Nothing);
    session.decode(&batch).unwrap();
    batch.clear();
    batch.push(&a, &tokens("de"), Want::Logits);
    batch.push(&b, &tokens("w"), Want::Logits);
    (a, b, batch)
}

#[test]
fn that_fails_half_way_changes_nothing_and_can_be_tried_again() {
    for error in [ErrorKind::OutOfCells, ErrorKind::Runtime, ErrorKind::Cancelled] {
        let mut session = session(Script::new().with_fault(1, Fault::Error(error)), 2);
        let (a, b, batch) = two(&mut session);
        let before = session.usage();
        assert_eq!(kind(session.decode(&batch)), error);
        assert_eq!((a.len(), b.len(), session.usage()), (3, 3, before));
        assert!(session.outputs().is_empty());
        session.decode(&batch).unwrap();
        assert_eq!((a.len(), b.len()), (5, 4));
        assert_eq!(session.outputs().logits(0).unwrap(), recomputed(&tokens("abcde")));
        assert_eq!(session.outputs().logits(1).unwrap(), recomputed(&tokens("xyzw")));
    }
}

#[test]
fn that_spends_its_sequences_leaves_the_others_alone() {
    let mut session = session(Script::new().with_fault(2, Fault::Spend(ErrorKind::Runtime)), 4);
    let (a, b, batch) = two(&mut session);
    let bystander = open(&mut session);
    feed(&mut session, &bystander, &tokens("by"), Want::Nothing).unwrap();
    assert_eq!(kind(session.decode(&batch)), ErrorKind::Runtime);
    assert!(a.is_spent() && b.is_spent() && !bystander.is_spent());
    assert_eq!((a.len(), b.len(), session.usage().cells), (0, 0, 2));
    assert_eq!(kind(session.decode(&batch)), ErrorKind::StaleSequence);
    assert_eq!(kind(feed(&mut session, &a, &tokens("a"), Want::Nothing)), ErrorKind::StaleSequence);
    assert_eq!(kind(session.truncate(&a, 0)), ErrorKind::StaleSequence);
    assert_eq!(kind(session.fork(&a, 0)), ErrorKind::StaleSequence);
    assert_eq!(kind(session.sample_with(&a, &Sampling::default(), &[])), ErrorKind::StaleSequence);
    assert_eq!(logits(&mut session, &bystander, &tokens("!")), recomputed(&tokens("by!")));
    assert_eq!(session.usage().sequences, 3);
    drop((a, b));
    assert_eq!(session.usage().sequences, 1);
    let again = open(&mut session);
    assert_eq!(logits(&mut session, &again, &tokens("abcde")), recomputed(&tokens("abcde")));
}

#[test]
fn that_loses_the_session_loses_it_for_good() {
    let mut session = session(Script::new().with_fault(1, Fault::Lose), 3);
    let (a, b, batch) = two(&mut session);
    assert_eq!(kind(session.decode(&batch)), ErrorKind::SessionLost);
    assert_eq!((a.len(), b.len()), (3, 3));
    assert_eq!(kind(session.decode(&batch)), ErrorKind::SessionLost);
    assert_eq!(kind(session.open(&OpenOptions::default())), ErrorKind::SessionLost);
    assert_eq!(kind(session.fork(&a, 1)), ErrorKind::SessionLost);
    assert_eq!(kind(session.truncate(&a, 1)), ErrorKind::SessionLost);
    assert_eq!(kind(session.sample_with(&a, &Sampling::default(), &[])), ErrorKind::SessionLost);
    assert_eq!(kind(session.save(&a, &mut Vec::new())), ErrorKind::SessionLost);
    assert_eq!(kind(session.restore(&mut &[][..])), ErrorKind::SessionLost);
    assert!(session.outputs().is_empty());
}

#[test]
fn that_is_interrupted_ends_there_and_the_level_stays_until_it_is_lowered() {
    let script = Script::new().with_hook(|step| {
        if (step.pass, step.done) == (1, 1) {
            step.interrupt.raise();
        }
        None
    });
    let mut session = session(script, 2);
    let (a, b, batch) = two(&mut session);
    assert_eq!(kind(session.decode(&batch)), ErrorKind::Cancelled);
    assert_eq!(kind(session.decode(&batch)), ErrorKind::Cancelled);
    assert_eq!((a.len(), b.len(), session.usage().cells), (3, 3, 6));
    session.interrupt().lower();
    session.decode(&batch).unwrap();
    assert_eq!(session.outputs().logits(1).unwrap(), recomputed(&tokens("xyzw")));
}

#[test]
fn brings_back_what_each_entry_wants() {
    let mut session = session(Script::new(), 5);
    let seqs: Vec<Sequence> = (0..5).map(|_| open(&mut session)).collect();
    session.sample_with(&seqs[1], &Sampling::default(), &tokens("abc")).unwrap();
    let wants = [Want::Nothing, Want::Token, Want::Logits, Want::Embedding, Want::Score];
    let mut batch = Batch::new();
    for (seq, want) in seqs.iter().zip(wants) {
        batch.push(seq, &tokens("abc"), want);
    }
    session.decode(&batch).unwrap();
    let out = session.outputs();
    assert_eq!(out.len(), 5);
    for (i, want) in wants.into_iter().enumerate() {
        assert_eq!(out.token(i).is_some(), want == Want::Token, "{want:?}");
        assert_eq!(out.logits(i).map(<[f32]>::len), (want == Want::Logits).then_some(260), "{want:?}");
        assert_eq!(out.embedding(i).is_some(), want == Want::Embedding, "{want:?}");
        assert_eq!(out.scores(i).len(), if want == Want::Score { 3 } else { 0 }, "{want:?}");
    }
    let row = out.logits(2).unwrap();
    let likeliest = (0..260).max_by(|&a, &b| f32::total_cmp(&row[a as usize], &row[b as usize])).map(Token);
    assert_eq!(out.token(1), likeliest);
}

/// The score of a token is its log-probability by the logits of the position before, also across passes.
#[test]
fn scores_what_was_fed() {
    let mut session = session(Script::new(), 2);
    let (a, b) = (open(&mut session), open(&mut session));
    feed(&mut session, &a, &tokens("hello"), Want::Score).unwrap();
    let whole = session.outputs().scores(0).to_vec();
    feed(&mut session, &b, &tokens("he"), Want::Nothing).unwrap();
    feed(&mut session, &b, &tokens("llo"), Want::Score).unwrap();
    assert_eq!(session.outputs().scores(0), &whole[2..]);
    let row = recomputed(&tokens("hel"));
    let expected = row[usize::from(b'l')] - row.iter().map(|x| x.exp()).sum::<f32>().ln();
    assert!((whole[3] - expected).abs() < 1e-4 && whole[0] == 0.0, "{whole:?}, {expected}");
}

#[test]
fn leaves_outputs_until_the_next_call_that_changes_something() {
    let mut session = session(Script::new(), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("a"), Want::Logits).unwrap();
    let _ = (session.usage(), session.model(), session.limits()); // these change nothing
    assert_eq!(session.outputs().len(), 1);
    let _fork = session.fork(&seq, 1).unwrap();
    assert!(session.outputs().is_empty());
}
