use super::*;
use crate::{ErrorKind, Sampling, sampling::Sampler};

#[test]
fn a_length_of_the_vocabulary_is_not_enough() {
    let sampling = Sampling::greedy().with_constraint(Constraint::regex("a+"));
    let error = Sampler::new(&sampling, &[], 260).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("for_vocab"), "{error}");
}
