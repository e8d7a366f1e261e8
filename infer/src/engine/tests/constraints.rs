use super::*;
use infer_core::{Constraint, Sampling};

fn constrained(constraint: Constraint) -> Request {
    let sampling = Sampling::default().with_temperature(1.0).with_seed(3).with_constraint(constraint);
    Request::rendered("the answer is ").with_sampling(sampling).with_max_tokens(64)
}

#[cfg(feature = "constraint")]
#[test]
fn texts_meet_them_and_what_cannot_be_met_is_an_error_of_that_request() {
    let engine = engine(Script::new());
    let running = engine.generate(endless().with_max_tokens(200));
    for seed in 0..8 {
        let mut request = constrained(Constraint::regex("(yes|no), [a-c]{2,5}[.]"));
        request.sampling.seed = seed;
        let done = engine.generate(request).complete().unwrap();
        let (answer, rest) = done.text.split_once(", ").unwrap();
        assert!(answer == "yes" || answer == "no", "{}", done.text);
        let letters = rest.strip_suffix('.').unwrap();
        assert!(
            (2..=5).contains(&letters.len()) && letters.bytes().all(|byte| (b'a'..=b'c').contains(&byte)),
            "{rest}"
        );
        assert_eq!(done.finish, FinishReason::EndOfText);
    }
    for broken in [
        Constraint::regex("(never closed"),
        Constraint::json_schema("{not json"),
        Constraint::json_schema(r##"{"$ref": "#/$defs/nowhere"}"##),
        Constraint::lark("start: nothing"),
        Constraint::gbnf("root ::= nothing"),
    ] {
        let mut generation = engine.generate(constrained(broken.clone()));
        let error = generation.wait().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConstraint, "{broken:?}: {error}");
        assert!(generation.wait().is_none());
    }
    assert_eq!(running.complete().unwrap().tokens.len(), 200);
    assert_eq!(engine.stats().failed, 0, "those never came to the engine's thread");
}

#[cfg(not(feature = "constraint"))]
#[test]
fn a_build_without_them_names_the_feature() {
    let engine = engine(Script::new());
    let error = engine.generate(constrained(Constraint::any_json())).complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`constraint`"), "{error}");
}

#[test]
fn tools_that_are_wrong_are_an_error_of_that_request() {
    let engine = engine(Script::new());
    let chat = || Request::chat([infer_core::chat::Message::user("hello")]);
    let error = engine.generate(chat().with_tools("{not json")).complete().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    engine.generate(chat().with_max_tokens(4)).complete().unwrap();
}
