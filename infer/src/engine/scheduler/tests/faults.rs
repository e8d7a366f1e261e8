use super::{
    poison::{DEADLY, Poison},
    *,
};
use infer_core::testing::{Cuts, Fault, Hooked};

fn requests(count: usize) -> Vec<Request> {
    (0..count).map(|i| ask(&format!("{i} is the number of this text"), 12)).collect()
}

/// Asks for all of them at once, and compares each with its solo run on a session that nothing goes wrong with.
fn all_are_as_alone(kit: &mut Kit, requests: &[Request]) {
    kit.plain = ScriptedModel::new(Script::new());
    let asked: Vec<Asked> = requests.iter().map(|request| kit.ask(request)).collect();
    kit.run();
    for (asked, request) in asked.into_iter().zip(requests) {
        assert_eq!(asked.one().tokens, kit.solo(request).tokens);
    }
    kit.assert_all_is_free();
}

fn poisoned(script: Script, sequences: usize) -> Kit {
    let options = SessionOptions::new().with_sequences(sequences);
    Kit::made_by(script, options, Settings { cache: 1000, ..Settings::default() }, |model, options| {
        Ok(Box::new(Hooked::new(model.session(options)?, Poison::default())))
    })
}

#[test]
fn a_session_that_is_lost_is_replaced_and_nothing_else() {
    let fault = |step: &infer_core::testing::Step<'_>| step.session == 0 && step.pass == 5 && step.done == 1;
    let mut kit = Kit::new(Script::new().with_hook(move |step| fault(step).then_some(Fault::Lose)), 4);
    all_are_as_alone(&mut kit, &requests(6));
    let stats = kit.stats();
    assert_eq!((stats.rebuilt, stats.failed), (1, 0));
}

#[test]
fn who_kills_its_session_fails_alone() {
    let mut kit = poisoned(Script::new(), 8);
    let mut all = requests(6);
    let before: Vec<Asked> = all.iter().map(|request| kit.ask(request)).collect();
    kit.turns(3);
    let deadly = kit.ask(&ask("this one is deadly\u{1}", 5));
    let last = ask("one that comes later", 12);
    let later = kit.ask(&last);
    kit.run();
    let error = deadly.error();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::SessionLost, "a token was deadly"));
    all.push(last);
    for (asked, request) in before.into_iter().chain([later]).zip(&all) {
        assert_eq!(asked.one().tokens, kit.solo(request).tokens);
    }
    let stats = kit.stats();
    assert_eq!((stats.failed, stats.finished, stats.rebuilt), (1, 7, 3), "twice in company, and once alone");
    kit.assert_all_is_free();
}

#[test]
fn a_text_alone_gets_a_second_chance_and_no_third() {
    let mut kit = poisoned(Script::new(), 1);
    let asked = kit.ask(&ask("deadly\u{1}", 5));
    kit.run();
    assert_eq!(asked.error().kind(), ErrorKind::SessionLost);
    assert_eq!(kit.stats().rebuilt, 1);
    assert_eq!(kit.answer(&ask("harmless", 5)).tokens.len(), 5);
    assert_eq!(kit.stats().rebuilt, 2);
}

#[test]
fn who_makes_passes_fail_ends_and_the_others_go_on() {
    for cuts in [Cuts::Anywhere, Cuts::Nowhere] {
        let mut kit = poisoned(Script::new().with_cuts(cuts), 8);
        let all = requests(6);
        let asked: Vec<Asked> = all.iter().map(|request| kit.ask(request)).collect();
        kit.turns(3);
        let bitter = [kit.ask(&ask("is this bitter\u{2}", 5)), kit.ask(&ask("or this\u{2}", 5))];
        kit.run();
        for bitter in bitter {
            assert_eq!(bitter.error().to_string(), "a token was bitter");
        }
        for (asked, request) in asked.into_iter().zip(&all) {
            assert_eq!(asked.one().tokens, kit.solo(request).tokens);
        }
        assert_eq!((kit.stats().failed, kit.stats().finished), (2, 6));
        kit.assert_all_is_free();
    }
}

#[test]
fn what_a_failed_pass_has_spent_is_computed_again() {
    let script = Script::new().with_cuts(Cuts::Nowhere).with_fault(6, Fault::Error(ErrorKind::Runtime));
    let mut kit = Kit::new(script, 4);
    all_are_as_alone(&mut kit, &requests(4));
    assert_eq!(kit.stats().failed, 0);
}

#[test]
fn where_no_other_session_can_be_made_all_end_with_the_reason() {
    let mut made = 0;
    let script = Script::new().with_fault(2, Fault::Lose);
    let options = SessionOptions::new().with_sequences(2);
    let mut kit = Kit::made_by(script, options, Settings::default(), move |model, options| {
        made += 1;
        if (2..5).contains(&made) {
            return Err(Error::new(ErrorKind::OutOfMemory, "the device is gone"));
        }
        model.session(options)
    });
    let asked = [kit.ask(&ask("one", 10)), kit.ask(&ask("two", 10)), kit.ask(&ask("three", 10))];
    kit.run();
    for asked in asked {
        let error = asked.error();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::OutOfMemory, "the device is gone"));
    }
    assert_eq!(kit.shared.waiting(), 0);
    // The next request finds it working again.
    assert_eq!(kit.answer(&ask("one", 2)).tokens.len(), 2);
    assert_eq!((kit.stats().rebuilt, kit.stats().failed), (1, 3));
}

#[test]
fn an_interrupt_from_outside_ends_what_was_in_the_pass() {
    let script = Script::new().with_hook(|step| {
        if step.pass == 3 && step.done == 1 {
            step.interrupt.raise();
        } else if step.pass > 3 {
            step.interrupt.lower();
        }
        None
    });
    let mut kit = Kit::new(script, 2);
    let asked = [kit.ask(&ask("one", 10)), kit.ask(&ask("two", 10))];
    kit.run();
    for asked in asked {
        let completion = asked.one();
        assert_eq!((completion.finish, completion.tokens.len()), (FinishReason::Cancelled, 3));
    }
    assert_eq!((kit.stats().cancelled, kit.stats().finished), (2, 0));
}

#[test]
fn beside_a_failing_text_the_others_are_computed_again_however_many_passes_it_takes() {
    // Nothing is left of a pass that failed, and a prompt takes many.
    let mut kit = poisoned(Script::new().with_cuts(Cuts::Nowhere).with_batch(2), 4);
    let long = ask("a prompt that takes many a pass", 4);
    let asked = kit.ask(&long);
    let bitter = kit.ask(&ask("this one is rather bitter\u{2}", 5));
    kit.run();
    assert_eq!(bitter.error().kind(), ErrorKind::Runtime);
    assert_eq!(asked.one().tokens, kit.solo(&long).tokens);
}

#[test]
fn each_completion_of_a_request_that_fails_is_counted() {
    let mut kit = poisoned(Script::new(), 4);
    let asked = kit.ask(&ask("bitter\u{2}", 5).with_n(3));
    kit.run();
    assert_eq!((asked.error().kind(), kit.stats().failed), (ErrorKind::Runtime, 3));
}

#[test]
fn a_request_that_comes_while_there_is_no_session_waits_for_the_next_one() {
    let adapter = infer_core::AdapterSource::new("tuned", "tuned");
    let options = SessionOptions::new().with_sequences(2).with_adapter(adapter);
    let script = Script::new().with_hook(|step| (step.session == 0).then_some(Fault::Lose));
    let mut kit = Kit::with_options(script, options, Settings::default());
    let first = kit.ask(&ask("loses its session", 3));
    kit.turns(1);
    assert!(kit.scheduler.session.is_none());
    let request = ask("comes too early", 3).with_adapter("tuned");
    let (early, unknown) = (kit.ask(&request), kit.ask(&ask("so does this", 3).with_adapter("unknown")));
    kit.run();
    assert_eq!(unknown.error().kind(), ErrorKind::InvalidInput);
    kit.plain = ScriptedModel::new(Script::new());
    assert_eq!(early.one().tokens, kit.solo(&request).tokens);
    assert_eq!(first.one().tokens.len(), 3);
}

#[test]
fn who_loses_each_session_before_its_first_pass_fails_alone() {
    let mut kit = poisoned(Script::new(), 4);
    let harmless = ask("harmless", 5);
    let (hostile, other) = (kit.ask(&ask("hostile\u{3}", 5)), kit.ask(&harmless));
    kit.run();
    assert_eq!(hostile.error().kind(), ErrorKind::SessionLost);
    assert_eq!(other.one().tokens, kit.solo(&harmless).tokens);
    assert_eq!((kit.stats().failed, kit.stats().rebuilt), (1, 2));
}

#[test]
fn a_session_that_is_lost_between_passes_ends_nobody() {
    // It is lost by a pass of the first text, and noticed when the second one is to be given a sequence.
    let options = SessionOptions::new().with_sequences(2);
    let mut kit = Kit::made_by(Script::new(), options, Settings::default(), |model, options| {
        Ok(Box::new(Hooked::new(model.session(options)?, Poison::default())))
    });
    let first = kit.ask(&ask("one", 10));
    kit.turns(3);
    kit.scheduler.session.as_mut().map(|session| session.decode(&deadly_batch())).unwrap().unwrap_err();
    let second = kit.ask(&ask("two", 10));
    kit.run();
    assert_eq!(first.one().tokens, kit.solo(&ask("one", 10)).tokens);
    assert_eq!(second.one().tokens, kit.solo(&ask("two", 10)).tokens);
    assert_eq!((kit.stats().rebuilt, kit.stats().failed), (1, 0));
}

/// Nobody's: the session is lost beside the scheduler.
fn deadly_batch() -> Batch {
    let mut session = ScriptedModel::new(Script::new()).session(&SessionOptions::new()).unwrap();
    let seq = session.open(&infer_core::OpenOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &[DEADLY], infer_core::Want::Nothing);
    batch
}

#[test]
fn a_full_context_is_computed_again_before_it_is_shifted() {
    let mut kit = poisoned(Script::new().with_context(20), 4);
    let shifting = ask("a beginning", 40).with_overflow(Overflow::Shift);
    let alone = kit.answer(&shifting);
    let asked = kit.ask(&shifting);
    // What was drawn last is a token more than the context has room for.
    while kit.scheduler.running.first().is_none_or(|text| text.log.len() <= 20) {
        kit.turns(1);
    }
    let hostile = kit.ask(&ask("hostile\u{3}", 5));
    kit.run();
    assert_eq!(hostile.error().kind(), ErrorKind::SessionLost);
    assert_eq!(asked.one().tokens, alone.tokens);
}
