//! The whole chain as plainly as the documentation says it, and any parameters for it.

use crate::{DryBreakers, Sampling, Token, sampling::uniform::Chances};
use proptest::prelude::*;

/// What [`Sampler::distribution`] should give, written down as plainly as the documentation says it: bias and penalties
/// in `f32`, so that the order of tokens is the same, the rest in `f64`.
pub(super) fn expected(sampling: &Sampling, logits: &[f32], history: &[Token]) -> Vec<(Token, f64)> {
    let mut logits = logits.to_vec();
    for &(token, bias) in &sampling.logit_bias {
        logits[token.index()] += bias;
    }
    penalise(sampling, &mut logits, history);
    let mut list: Vec<(Token, f64)> = (0..).map(Token).zip(logits.into_iter().map(f64::from)).collect();
    list.retain(|&(_, logit)| logit > f64::NEG_INFINITY);
    list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if sampling.top_n_sigma > 0.0 {
        let (n, peak) = (list.len() as f64, list[0].1);
        let mean = list.iter().map(|&(_, logit)| logit).sum::<f64>() / n;
        let variance = list.iter().map(|&(_, logit)| (logit - mean).powi(2)).sum::<f64>() / n;
        list.retain(|&(_, logit)| logit >= peak - f64::from(sampling.top_n_sigma) * variance.sqrt());
    }
    if sampling.top_k > 0 {
        list.truncate(sampling.top_k);
    }
    if sampling.typical_p < 1.0 {
        list = typical(list, sampling.typical_p.into());
    }
    if sampling.top_p < 1.0 {
        let mut sum = 0.0;
        let enough = |&p: &f64| {
            sum += p;
            sum >= f64::from(sampling.top_p)
        };
        let last = probabilities(&list, 1.0).iter().position(enough);
        list.truncate(last.map_or(list.len(), |last| last + 1));
    }
    let peak = list[0].1;
    list.retain(|&(_, logit)| logit - peak >= f64::from(sampling.min_p).ln());
    if Chances::of(sampling.seed, history.len()).xtc < sampling.xtc_probability {
        let obvious = probabilities(&list, 1.0).iter().filter(|&&p| p >= f64::from(sampling.xtc_threshold)).count();
        list.drain(..obvious.saturating_sub(1));
    }
    let temperature = temperature(&list, sampling);
    if temperature == 0.0 {
        return vec![(list[0].0, 1.0)];
    }
    let shares = probabilities(&list, temperature);
    list.iter().zip(shares).map(|(&(token, _), p)| (token, p)).collect()
}

fn penalise(sampling: &Sampling, logits: &mut [f32], history: &[Token]) {
    let window = &history[history.len().saturating_sub(sampling.penalty_window)..];
    for (token, logit) in (0..).map(Token).zip(&mut *logits) {
        let count = window.iter().filter(|&&other| other == token).count();
        if count > 0 {
            let factor = sampling.repetition_penalty;
            *logit = if *logit > 0.0 { *logit / factor } else { *logit * factor };
            *logit -= count as f32 * sampling.frequency_penalty + sampling.presence_penalty;
        }
    }
    // DRY, without breakers: those have tests of their own.
    let window = &history[history.len().saturating_sub(sampling.dry_window)..];
    for (token, logit) in (0..).map(Token).zip(logits) {
        let before = (0..window.len()).filter(|&at| window[at] == token);
        let length = |at: usize| window[..at].iter().rev().zip(window.iter().rev()).take_while(|(a, b)| a == b).count();
        let longest = before.filter(|&at| at > 0).map(length).max();
        if let Some(beyond) = longest.and_then(|longest| longest.checked_sub(sampling.dry_allowed_length)) {
            *logit -= sampling.dry_multiplier * sampling.dry_base.powi(beyond as i32);
        }
    }
}

/// Surprise nearest to the expected surprise first; the list comes and goes with the most probable first.
fn typical(list: Vec<(Token, f64)>, p: f64) -> Vec<(Token, f64)> {
    let shares = probabilities(&list, 1.0);
    let entropy: f64 = shares.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
    let total: f64 = list.iter().map(|&(_, logit)| (logit - list[0].1).exp()).sum();
    let surprise = |at: usize| total.ln() - (list[at].1 - list[0].1);
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by(|&a, &b| (surprise(a) - entropy).abs().total_cmp(&(surprise(b) - entropy).abs()));
    let mut sum = 0.0;
    let enough = |&at: &usize| {
        sum += shares[at];
        sum > p
    };
    let last = order.iter().position(enough);
    order.truncate(last.map_or(list.len(), |last| last + 1));
    order.sort_unstable();
    order.into_iter().map(|at| list[at]).collect()
}

fn temperature(list: &[(Token, f64)], sampling: &Sampling) -> f64 {
    let (temperature, range) = (f64::from(sampling.temperature), f64::from(sampling.dynatemp_range));
    if range == 0.0 || list.len() < 2 {
        return temperature;
    }
    let entropy: f64 = probabilities(list, 1.0).iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum();
    let share = (entropy / (list.len() as f64).ln()).clamp(0.0, 1.0).powf(sampling.dynatemp_exponent.into());
    let (least, most) = ((temperature - range).max(0.0), temperature + range);
    least + (most - least) * share
}

/// Of a list with the most probable first.
fn probabilities(list: &[(Token, f64)], temperature: f64) -> Vec<f64> {
    let weights: Vec<f64> = list.iter().map(|&(_, logit)| ((logit - list[0].1) / temperature).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

/// All steps on their own and together, off and at their ends.
pub(super) fn samplings() -> impl Strategy<Value = Sampling> {
    let truncation = (
        prop_oneof![3 => Just(0.0f32), 1 => 0.1f32..4.0],
        prop_oneof![Just(0), 1usize..60, Just(5000)],
        prop_oneof![4 => Just(1.0f32), 1 => Just(0.0), 3 => 0.01f32..0.9999],
        prop_oneof![2 => Just(1.0f32), 1 => Just(0.0), 3 => 0.01f32..0.9999],
        prop_oneof![2 => Just(0.0f32), 1 => Just(1.0), 3 => 0.001f32..0.5],
        prop_oneof![2 => Just((0.0f32, 0.1f32)), 1 => Just((1.0, 0.0)), 2 => (0f32..1.0, 0.001f32..0.6)],
    );
    let penalties = (
        prop_oneof![Just(1.0f32), 0.5f32..2.0],
        prop_oneof![Just(0.0f32), -1f32..1.0],
        prop_oneof![Just(0.0f32), -1f32..1.0],
        prop_oneof![Just(0usize), 1usize..12, Just(usize::MAX)],
    );
    let dry = (
        prop_oneof![2 => Just(0.0f32), 1 => 0.1f32..2.0],
        1f32..2.5,
        0usize..4,
        prop_oneof![Just(0usize), 1usize..30, Just(usize::MAX)],
    );
    let temperature = (
        prop_oneof![Just(0.0f32), Just(1.0), 0.05f32..3.0],
        prop_oneof![3 => Just((0.0f32, 1.0f32)), 1 => (0f32..2.0, 0f32..3.0)],
    );
    let bias = prop_oneof![Just(f32::NEG_INFINITY), -5f32..5.0];
    let bias = prop::collection::vec(((0u32..100).prop_map(Token), bias), 0..4);
    (truncation, penalties, dry, temperature, bias, any::<u64>()).prop_map(
        |(truncation, penalties, dry, (temperature, dynatemp), logit_bias, seed)| {
            let (top_n_sigma, top_k, typical_p, top_p, min_p, xtc) = truncation;
            let (repetition_penalty, frequency_penalty, presence_penalty, penalty_window) = penalties;
            let (dry_multiplier, dry_base, dry_allowed_length, dry_window) = dry;
            Sampling {
                temperature,
                logit_bias,
                repetition_penalty,
                frequency_penalty,
                presence_penalty,
                penalty_window,
                dry_multiplier,
                dry_base,
                dry_allowed_length,
                dry_window,
                dry_breakers: DryBreakers::default(),
                top_n_sigma,
                top_k,
                typical_p,
                top_p,
                min_p,
                xtc_probability: xtc.0,
                xtc_threshold: xtc.1,
                dynatemp_range: dynatemp.0,
                dynatemp_exponent: dynatemp.1,
                seed,
                logprobs: 0,
                constraint: None,
            }
        },
    )
}
