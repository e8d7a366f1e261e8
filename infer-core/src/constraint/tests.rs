use super::*;
use crate::{ErrorKind, Sampling, sampling::Sampler};

#[test]
fn a_length_of_the_vocabulary_is_not_enough() {
    let sampling = Sampling::greedy().with_constraint(Constraint::regex("a+"));
    let error = Sampler::new(&sampling, &[], 260).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("for_vocab"), "{error}");
}

#[test]
fn it_is_plain_data() {
    let constraint = Constraint::json_schema("{}").with_budget(9).with_whitespace(Whitespace::Flexible);
    let sampling = Sampling::greedy().with_constraint(constraint.clone().with_forced_tokens(false));
    let text = serde_json::to_string(&sampling).unwrap();
    assert_eq!(serde_json::from_str::<Sampling>(&text).unwrap(), sampling);
    assert_ne!(sampling, Sampling::greedy().with_constraint(constraint));
    let least: Constraint = serde_json::from_str(r#"{"format": "Regex", "text": "a+"}"#).unwrap();
    assert_eq!(least, Constraint::regex("a+"), "what is not said is as it is by default");
    assert!(serde_json::from_str::<Sampling>("{}").unwrap().constraint.is_none());
}

#[cfg(feature = "constraint")]
#[test]
fn a_vocabulary_keeps_the_last_ones_and_is_none_the_other_for_it() {
    let vocab = Arc::new(crate::testing::byte_vocab());
    let plain = serde_json::to_string(&*vocab).unwrap();
    let kept = |vocab: &Vocab| format!("{:?}", vocab.constraints);
    Constraint::regex("(").compile(&vocab).unwrap_err();
    assert_eq!(kept(&vocab), "0 constraints compiled", "one that cannot be compiled takes no place");
    for number in 0..70 {
        Constraint::regex(format!("a{{{number}}}b")).compile(&vocab).unwrap();
        // How it is followed makes no other one.
        Constraint::regex(format!("a{{{number}}}b")).with_budget(99).compile(&vocab).unwrap();
    }
    assert_eq!(kept(&vocab), "64 constraints compiled");
    let clone = Vocab::clone(&vocab);
    assert_eq!((kept(&clone), &clone), (kept(&vocab), &*vocab), "a clone shares them");
    assert_eq!(*vocab, crate::testing::byte_vocab());
    assert_eq!(serde_json::to_string(&*vocab).unwrap(), plain);
}
