//! What is wrong with a request ends it, and nothing else.

use super::*;
use crate::Sampling;

fn refused(kit: &mut Kit, request: &Request) -> (ErrorKind, String) {
    let asked = kit.ask(request);
    kit.run();
    let error = asked.error();
    (error.kind(), error.to_string())
}

#[test]
fn each_is_refused_by_name_beside_one_that_is_not() {
    let mut kit = Kit::new(Script::new().with_context(100), 4);
    let good = kit.ask(&ask("this one is as it should be", 20));
    kit.turns(3);
    let long = "x".repeat(90);
    let constrained = infer_core::Constraint::regex("a*");
    for (request, kind, begins) in [
        (Request::tokens([]), ErrorKind::InvalidInput, "the prompt has no tokens"),
        (
            Request::tokens([Token(1), Token(9999)]),
            ErrorKind::InvalidInput,
            "token 9999 at 1 of the prompt is outside the vocabulary",
        ),
        (
            Request::text("x".repeat(101)),
            ErrorKind::ContextFull,
            "the prompt has 101 tokens, the context 100, all the model was trained for; shorten it",
        ),
        (
            ask(&long, 11).with_overflow(Overflow::Error),
            ErrorKind::ContextFull,
            "the prompt has 90 tokens and 11 may follow, the context has 100, all the model was trained for; ask for fewer, or",
        ),
        (Request::text("x").with_overflow(Overflow::Shift), ErrorKind::InvalidInput, "a text that goes on"),
        (
            ask("x", 9).with_overflow(Overflow::Shift).with_sampling(Sampling::default().with_constraint(constrained)),
            ErrorKind::InvalidInput,
            "a text with a constraint cannot go on",
        ),
        (ask("x", 1).with_n(5), ErrorKind::InvalidInput, "5 completions were asked for, and there are 4 sequences"),
        (ask("x", 1).with_stop(""), ErrorKind::InvalidInput, ""),
        (ask("x", 1).with_adapter("nobody"), ErrorKind::InvalidInput, "no adapter \"nobody\" is loaded"),
        (
            ask("x", 1).with_sampling(Sampling::default().with_temperature(f32::NAN)),
            ErrorKind::InvalidInput,
            "temperature is NaN",
        ),
        (ask("x", 1).with_sampling(Sampling::default().with_top_p(-1.0)), ErrorKind::InvalidInput, "top_p is -1"),
    ] {
        let (refused, message) = refused(&mut kit, &request);
        assert_eq!(refused, kind, "{message}");
        assert!(message.starts_with(begins), "{message}");
    }
    assert_eq!(good.one().tokens.len(), 20);
    assert_eq!((kit.stats().failed, kit.stats().finished), (11, 1));
    kit.assert_all_is_free();
}

#[test]
fn a_larger_context_is_advised_only_where_the_model_was_trained_for_one() {
    let long = Request::text("x".repeat(51));
    let strict = Request::text("x".repeat(45)).with_overflow(Overflow::Error);
    let (larger, all) = ("or make the context larger", "all the model was trained for");
    for (trained, says, never) in [(100, larger, all), (50, all, larger)] {
        let options = SessionOptions::new().with_context(50);
        let mut kit = Kit::with_options(Script::new().with_context(trained), options, Settings::default());
        for request in [&long, &strict, &strict.clone().with_max_tokens(6)] {
            let (kind, message) = refused(&mut kit, request);
            assert_eq!(kind, ErrorKind::ContextFull);
            assert!(message.contains(says) && !message.contains(never), "{message}");
        }
    }
}

#[test]
fn no_completions_are_refused() {
    let mut kit = Kit::new(Script::new(), 4);
    let _nothing_to_read = kit.ask(&ask("x", 1).with_n(0));
    assert!(kit.scheduler.is_idle());
    kit.run();
    assert_eq!(kit.stats().failed, 1);
}

#[test]
fn a_context_of_one_position_cannot_be_shifted() {
    let mut kit = Kit::new(Script::new().with_context(1), 1);
    let (kind, message) = refused(&mut kit, &ask("x", 10).with_overflow(Overflow::Shift));
    assert!(kind == ErrorKind::InvalidInput && message.contains("one position"), "{message}");
}

#[test]
fn a_session_that_cannot_move_positions_refuses_to_go_on() {
    let mut capabilities =
        ScriptedModel::new(Script::new()).scripted(&SessionOptions::new()).unwrap().capabilities().clone();
    capabilities.shift = false;
    let mut kit = Kit::new(Script::new().with_capabilities(capabilities), 1);
    let (kind, _) = refused(&mut kit, &ask("x", 10).with_overflow(Overflow::Shift));
    assert_eq!(kind, ErrorKind::Unsupported);
}
