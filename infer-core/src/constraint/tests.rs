use super::*;
use crate::{ErrorKind, Sampling, Token, sampling::Sampler, testing::byte_vocab};

#[test]
fn a_length_of_the_vocabulary_is_not_enough() {
    let sampling = Sampling::greedy().with_constraint(Constraint::regex("a+"));
    let error = Sampler::new(&sampling, &[], 260).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("for_vocab"), "{error}");
}

#[cfg(not(feature = "constraint"))]
#[test]
fn a_build_without_the_feature_names_it() {
    let vocab = Arc::new(byte_vocab());
    let constraint = Constraint::regex("a+");
    let sampling = Sampling::greedy().with_constraint(constraint.clone());
    for error in
        [constraint.compile(&vocab).unwrap_err(), Sampler::for_vocab(&sampling, &[Token(1)], &vocab).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`constraint`"), "{error}");
    }
}
