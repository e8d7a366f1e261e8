//! Ours against theirs: the same tokens, with the same probabilities.

use crate::rows::Row;
use infer::{Sampling, Token, sampling::Sampler};

/// Within which probabilities are the same.
const SAME: f64 = 1e-5;

/// Below this a token may be left out or not: `f32` has no number for what its logit means.
const NOTHING: f64 = 1e-25;

/// By token, the probability of those that are left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left(Vec<Option<f64>>);

impl Left {
    pub(crate) fn ours(sampling: &Sampling, row: &Row) -> Self {
        let Row { logits, history, .. } = row;
        let mut sampler = Sampler::new(sampling, history, logits.len()).unwrap();
        let mut left = Vec::new();
        sampler.distribution(logits, history.len(), &mut left).unwrap();
        Self::new(left.into_iter().map(|(token, p)| (token, f64::from(p))), row)
    }

    pub(crate) fn new(left: impl IntoIterator<Item = (Token, f64)>, row: &Row) -> Self {
        let mut by_token = vec![None; row.logits.len()];
        for (token, p) in left {
            assert_eq!(by_token[token.index()].replace(p), None, "token {token} is left twice");
        }
        Self(by_token)
    }

    fn iter(&self) -> impl Iterator<Item = (Token, f64)> {
        (0..).map(Token).zip(&self.0).filter_map(|(token, p)| Some((token, (*p)?)))
    }

    pub(crate) fn tokens(&self) -> impl Iterator<Item = Token> {
        self.iter().map(|(token, _)| token)
    }

    /// The tokens that `other` has not.
    pub(crate) fn without(&self, other: &Self) -> Vec<Token> {
        let missing = self.iter().filter(|&(token, p)| p > NOTHING && other.0[token.index()].is_none());
        missing.map(|(token, _)| token).collect()
    }

    pub(crate) fn has_the_tokens_of(&self, other: &Self) -> bool {
        self.without(other).is_empty() && other.without(self).is_empty()
    }

    /// The same tokens with the same probabilities.
    pub(crate) fn check_same(&self, theirs: &Self) -> Result<(), String> {
        let (only_ours, only_theirs) = (self.without(theirs), theirs.without(self));
        if only_ours.is_empty() && only_theirs.is_empty() {
            return self.check_probabilities(theirs);
        }
        Err(format!(
            "{} against {} tokens, only we have {only_ours:?}, only they {only_theirs:?}",
            self.iter().count(),
            theirs.iter().count()
        ))
    }

    /// The same probabilities among the tokens that both have.
    pub(crate) fn check_probabilities(&self, theirs: &Self) -> Result<(), String> {
        let both: Vec<_> = self.iter().filter_map(|(token, p)| Some((token, p, theirs.0[token.index()]?))).collect();
        let [ours, others] = [both.iter().map(|both| both.1).sum::<f64>(), both.iter().map(|both| both.2).sum()];
        match both.iter().find(|(_, p, q)| (p / ours - q / others).abs() > SAME) {
            Some((token, p, q)) => Err(format!("token {token} has {} against {}", p / ours, q / others)),
            None if both.is_empty() => Err("not one token in common".into()),
            None => Ok(()),
        }
    }

    /// The temperature at which logits have become these probabilities, by its best token and one that is far below it.
    pub(crate) fn temperature(&self, logits: &[f32]) -> f64 {
        let best = self.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let far = self.iter().filter(|(_, p)| *p > 1e-6 * best.1).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let logit = |token: Token| f64::from(logits[token.index()]);
        (logit(best.0) - logit(far.0)) / (best.1 / far.1).ln()
    }
}
