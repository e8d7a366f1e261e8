//! Passes that fail, and what of them is taken back.

use super::*;

#[test]
fn chunks_forks_and_cuts_compute_the_same() {
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let Faked { control, model, .. } = faked(Script::new());
        let mut session = model.session(&options().with_layout(layout)).unwrap();
        let prompt = tokens(0..20);
        let seq = open(&mut session);
        for chunk in prompt.chunks(7) {
            feed(&mut session, &seq, chunk, Want::Logits).unwrap();
        }
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &prompt), "{layout:?}");

        let child = session.fork(&seq, 12).unwrap();
        session.truncate(&seq, 5).unwrap();
        let mut batch = Batch::new();
        batch.push(&child, &tokens(100..103), Want::Logits);
        batch.push(&seq, &tokens(50..51), Want::Logits);
        session.decode(&batch).unwrap();
        let of_child = [tokens(0..12), tokens(100..103)].concat();
        let of_seq = [tokens(0..5), tokens(50..51)].concat();
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &of_child), "{layout:?}");
        assert_eq!(session.outputs().logits(1).unwrap(), alone(&model, &of_seq), "{layout:?}");
        drop((session, seq, child, model));
        assert_eq!(control.live(), Live::default());
        assert_eq!(control.breaches(), [""; 0]);
    }
}

#[test]
fn a_pass_that_failed_has_changed_nothing() {
    let cases = [
        (Fault::Result(1), ErrorKind::OutOfCells, Some(1)),
        (Fault::Result(2), ErrorKind::Cancelled, None),
        (Fault::ResultAfter { result: 2, ubatches: 2 }, ErrorKind::Cancelled, None),
        (Fault::Result(-1), ErrorKind::Runtime, Some(-1)),
        (Fault::Result(-2), ErrorKind::Runtime, Some(-2)),
        (Fault::ResultAfter { result: -3, ubatches: 1 }, ErrorKind::Runtime, Some(-3)),
    ];
    for (fault, kind, code) in cases {
        let Faked { control, model, .. } = faked(Script::new());
        let mut session = model.session(&options()).unwrap();
        let (seq, other) = (open(&mut session), open(&mut session));
        feed(&mut session, &seq, &tokens(0..6), Want::Nothing).unwrap();
        let used = session.usage();

        let mut batch = Batch::new();
        batch.push(&seq, &tokens(6..20), Want::Logits);
        batch.push(&other, &tokens(30..40), Want::Logits);
        control.plan(fault.clone());
        let error = session.decode(&batch).unwrap_err();
        assert_eq!((error.kind(), error.code()), (kind, code), "{fault:?}");
        assert_eq!((seq.len(), other.len(), session.usage()), (6, 0, used), "{fault:?}");
        assert!(session.outputs().is_empty() && session.outputs().logits(0).is_none());

        session.decode(&batch).unwrap_or_else(|error| panic!("the same batch again after {fault:?}: {error}"));
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..20)), "{fault:?}");
        assert_eq!(session.outputs().logits(1).unwrap(), alone(&model, &tokens(30..40)), "{fault:?}");
    }
}

#[test]
fn an_exception_spends_the_sequences_of_its_batch_and_no_others() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (hit, unharmed) = (open(&mut session), open(&mut session));
    feed(&mut session, &hit, &tokens(0..6), Want::Nothing).unwrap();
    feed(&mut session, &unharmed, &tokens(0..9), Want::Nothing).unwrap();

    control.plan(Fault::Exception("out of ideas".into()));
    let error = feed(&mut session, &hit, &tokens(6..7), Want::Nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime);
    assert!(error.to_string().contains("out of ideas"), "{error}");
    assert!(hit.is_spent() && !unharmed.is_spent());
    let again = feed(&mut session, &hit, &tokens(6..7), Want::Nothing).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::StaleSequence);
    assert_eq!(session.usage().cells, 9);

    feed(&mut session, &unharmed, &tokens(9..10), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..10)));
    drop(hit);
    let reopened = open(&mut session);
    feed(&mut session, &reopened, &tokens(0..7), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..7)));
}

#[test]
fn a_state_that_cannot_go_back_is_spent_and_says_what_it_cannot_do() {
    let Faked { control, model, .. } = faked(Script::new().with_kind(Kind::Recurrent));
    let mut session = model.session(&options()).unwrap();
    assert!(!session.capabilities().truncate && !session.capabilities().fork);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..10), Want::Nothing).unwrap();
    assert_eq!(session.truncate(&seq, 4).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(session.fork(&seq, 4).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(seq.len(), 10);

    let whole = session.fork(&seq, 10).unwrap();
    feed(&mut session, &whole, &tokens(10..12), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..12)));

    control.plan(Fault::ResultAfter { result: 2, ubatches: 1 });
    let error = feed(&mut session, &seq, &tokens(10..20), Want::Nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    // One book of all sequences is half written.
    assert!(seq.is_spent() && whole.is_spent());
    assert_eq!((session.usage().cells, session.usage().sequences), (0, 2));
    drop((seq, whole));
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(3..5), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(3..5)));
}

#[test]
fn rows_that_are_not_there_are_an_error_and_the_pass_is_taken_back() {
    for rows in [Rows::Failed, Rows::Null, Rows::Short] {
        let Faked { control, model, .. } = faked(Script::new());
        let mut session = model.session(&options()).unwrap();
        let seq = open(&mut session);
        session.sample_with(&seq, &Sampling::greedy(), &tokens(0..3)).unwrap();
        control.set_rows(rows);
        let error = feed(&mut session, &seq, &tokens(0..3), Want::Token).unwrap_err();
        assert_eq!((error.kind(), seq.len()), (ErrorKind::Runtime, 0), "{rows:?}: {error}");
        assert!(session.outputs().is_empty());
        control.set_rows(Rows::Given);
        feed(&mut session, &seq, &tokens(0..3), Want::Logits).unwrap();
        assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..3)));
        assert!(session.outputs().token(0).is_some());
    }
}

#[test]
fn a_draw_that_fails_takes_the_pass_back() {
    let Faked { model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (seq, other) = (open(&mut session), open(&mut session));
    let vocab = u32::try_from(session.limits().vocab).unwrap();
    let none = (0..vocab).fold(Sampling::greedy(), |s, id| s.with_logit_bias(Token(id), f32::NEG_INFINITY));
    session.sample_with(&other, &Sampling::greedy(), &[]).unwrap();
    session.sample_with(&seq, &none, &[]).unwrap();
    let mut batch = Batch::new();
    batch.push(&other, &tokens(0..4), Want::Token);
    batch.push(&seq, &tokens(0..4), Want::Token);
    assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!((seq.len(), other.len(), session.usage().cells), (0, 0, 0));
    assert!(session.outputs().is_empty());
    session.sample_with(&seq, &Sampling::greedy(), &[]).unwrap();
    session.decode(&batch).unwrap();
    assert_eq!(session.outputs().token(0), session.outputs().token(1));
}

#[test]
fn an_interrupt_is_a_level() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (seq, interrupt) = (open(&mut session), session.interrupt());
    interrupt.raise();
    for _ in 0..2 {
        let error = feed(&mut session, &seq, &tokens(0..3), Want::Nothing).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
    assert_eq!(control.passes(), 0, "the library is not even asked");
    interrupt.lower();

    control.plan(Fault::UntilAborted);
    let stopper = std::thread::spawn({
        let (interrupt, control) = (interrupt.clone(), control.clone());
        move || {
            while control.passes() == 0 {
                std::thread::yield_now();
            }
            interrupt.raise();
        }
    });
    let error = feed(&mut session, &seq, &tokens(0..3), Want::Nothing).unwrap_err();
    stopper.join().unwrap();
    assert_eq!((error.kind(), seq.len()), (ErrorKind::Cancelled, 0));
    interrupt.lower();
    feed(&mut session, &seq, &tokens(0..3), Want::Nothing).unwrap();
    drop(session);
    interrupt.raise();
}

#[test]
fn a_token_without_sampling_is_refused_before_the_pass() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    let error = feed(&mut session, &seq, &tokens(0..3), Want::Token).unwrap_err();
    assert_eq!((error.kind(), control.passes()), (ErrorKind::InvalidInput, 0));
    feed(&mut session, &seq, &tokens(0..3), Want::Logits).unwrap();
    assert!(session.outputs().logits(0).is_some() && session.outputs().token(0).is_none());
}

#[test]
fn a_panic_of_a_subscriber_in_a_pass_goes_on_and_the_pass_is_taken_back() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..5), Want::Nothing).unwrap();
    control.plan(Fault::ResultAfter { result: -3, ubatches: 1 });
    let raised = tracing::subscriber::with_default(Listener::new(|_| panic!("from the subscriber")), || {
        panic::catch_unwind(AssertUnwindSafe(|| feed(&mut session, &seq, &tokens(5..20), Want::Logits)))
    });
    assert_eq!(raised.unwrap_err().downcast_ref(), Some(&"from the subscriber"));
    assert_eq!(seq.len(), 5);
    feed(&mut session, &seq, &tokens(5..20), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..20)));
}

/// The token before what is scored is taken out and fed again: whatever goes wrong then, it is put back, or the sequence is
/// spent.
#[test]
fn a_scoring_pass_that_fails_puts_the_last_token_back() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens(0..20), Want::Nothing).unwrap();
    let failing = |result| Fault::ResultAfter { result, ubatches: 1 };
    for (fault, kind) in [
        (Fault::Result(1), ErrorKind::OutOfCells),
        (failing(2), ErrorKind::Cancelled),
        (failing(-3), ErrorKind::Runtime),
    ] {
        control.plan(fault);
        let error = feed(&mut session, &seq, &tokens(30..50), Want::Score).unwrap_err();
        assert_eq!((error.kind(), seq.len(), seq.is_spent()), (kind, 20, false), "{error}");
        assert_eq!(session.usage().cells, 20);
    }
    feed(&mut session, &seq, &tokens(30..50), Want::Score).unwrap();
    assert_eq!(session.outputs().scores(0).len(), 20);
    feed(&mut session, &seq, &tokens(7..8), Want::Logits).unwrap();
    let whole = [tokens(0..20), tokens(30..50), tokens(7..8)].concat();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &whole));

    // The second failure is of the call that puts it back.
    control.plan_all([Some(failing(2)), Some(Fault::Result(-3))]);
    let error = feed(&mut session, &seq, &tokens(30..40), Want::Score).unwrap_err();
    assert_eq!((error.kind(), seq.is_spent(), session.usage().cells), (ErrorKind::Cancelled, true, 0));
    assert_eq!(control.breaches(), [""; 0]);
}

/// Keys of which nobody knows which were moved are good for nothing.
#[test]
fn a_shift_that_fails_half_way_spends_the_sequence_and_no_other() {
    let Faked { control, model, .. } = faked(Script::new());
    let mut session = model.session(&options()).unwrap();
    let (seq, other) = (open(&mut session), open(&mut session));
    feed(&mut session, &seq, &tokens(0..20), Want::Nothing).unwrap();
    feed(&mut session, &other, &tokens(0..5), Want::Nothing).unwrap();
    control.fail_update();
    assert_eq!(session.shift(&seq, 2..12).unwrap_err().kind(), ErrorKind::Runtime);
    assert_eq!((seq.is_spent(), other.is_spent(), session.usage().cells), (true, false, 5));
    feed(&mut session, &other, &tokens(5..6), Want::Logits).unwrap();
    assert_eq!(session.outputs().logits(0).unwrap(), alone(&model, &tokens(0..6)));
    // What is behind everything else moves nothing.
    control.fail_update();
    session.shift(&other, 3..6).unwrap();
    assert_eq!(other.len(), 3);
    assert_eq!(control.breaches(), [""; 0]);
}
