//! Tokens that are drawn where the logits are computed: by the host's rules, with its random numbers as inputs, so that only tokens come back.
//!
//! The steps are those of [`infer_core::sampling`]. All that leave tokens out keep the best of the row, of equals those with the lower ids; so each
//! comes to a number of tokens that are kept, the smallest of which counts. Then the tokens stand in the order of their ids, each as wide
//! as its probability, and the token at the place of the random number is drawn. Sums are in 64 bits where the device has them.
//!
//! What is no prefix of that order, and what looks at the text, is the host's.

use crate::{Array, DType, Scope};
use infer_core::{Result, Sampling, sampling::Sampler};

/// How the token of a row is drawn.
pub(crate) struct Draw {
    kind: Kind,
    /// What differences of logits are multiplied with.
    scale: f32,
    uniform: f32,
    top_k: i32,
    top_p: f32,
    /// How far below the largest logit a token may be: the logarithm of min_p.
    least: f32,
    /// What is added to the row first.
    additions: Option<Vec<f32>>,
}

/// Which graph a draw takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The largest logit.
    Best,
    /// By a random number, of those that are near enough to the largest.
    Warm,
    /// The same, of the best ones only: the row has to be sorted.
    Ranked,
}

/// A share that no sum reaches.
const ALL: f32 = 2.0;

impl Draw {
    /// How the token for `position` is drawn on the device, by a sampler that knows all tokens before; `None` where the host draws it.
    ///
    /// # Errors
    /// Those of [`Sampler::additions`].
    pub(crate) fn plan(sampler: &mut Sampler, position: usize, vocab: usize) -> Result<Option<Self>> {
        let Some(kind) = kind(sampler.sampling(), vocab) else { return Ok(None) };
        let mut additions = Vec::new();
        let adds = sampler.additions(position, &mut additions)?;
        let Sampling { temperature, top_k, top_p, min_p, .. } = *sampler.sampling();
        let by_k = (1..vocab).contains(&top_k);
        Ok(Some(Self {
            kind,
            // As the host has it: a temperature so small that its inverse overflows leaves the largest all the same.
            scale: if temperature == 0.0 { 1.0 } else { temperature.recip().min(f32::MAX) },
            uniform: sampler.uniform(position),
            top_k: if by_k { top_k as i32 } else { i32::MAX },
            top_p: if top_p < 1.0 { top_p } else { ALL },
            least: min_p.ln(),
            additions: adds.then_some(additions),
        }))
    }

    /// In which order draws are to stand, so that those that take the same graph stand together.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        (self.kind, self.additions.is_some())
    }
}

/// By which graph this sampling draws; `None` where it is the host's.
fn kind(sampling: &Sampling, vocab: usize) -> Option<Kind> {
    // Whatever it has beside these, also what is not thought of here, is the host's.
    let Sampling { temperature, top_k, top_p, min_p, seed, penalty_window, ref constraint, ref logit_bias, .. } =
        *sampling;
    let mut plain =
        Sampling::default().with_temperature(temperature).with_seed(seed).with_penalty_window(penalty_window);
    plain = plain.with_top_k(top_k).with_top_p(top_p).with_min_p(min_p);
    plain.logit_bias.clone_from(logit_bias);
    plain.constraint.clone_from(constraint);
    // Whether a budget has time for a token is found when it was drawn, and another one is drawn then.
    let has_budget = constraint.as_ref().is_some_and(|constraint| constraint.budget().is_some());
    if *sampling != plain || has_budget {
        return None;
    }
    let is_ranked = (1..vocab).contains(&top_k) || top_p < 1.0;
    Some(match sampling.is_greedy() {
        true => Kind::Best,
        false if is_ranked => Kind::Ranked,
        false => Kind::Warm,
    })
}

/// What was drawn, a row each.
#[derive(Clone, Copy)]
pub(crate) struct Drawn<'s> {
    /// `[rows, 1]`, u32.
    pub(crate) tokens: Array<'s>,
    /// `[rows, 2]`, f32: their log-probabilities in the model's own distribution, and their logits with what was added.
    pub(crate) numbers: Array<'s>,
}

impl<'s> Drawn<'s> {
    /// Draws from these rows, `[draws, vocabulary]` of f32; draws stand in the order of their [ranks](Draw::rank). With sums of `wide` numbers.
    pub(crate) fn of(rows: Array<'s>, draws: &[Draw], vocab: usize, wide: DType) -> Self {
        let scope = rows.scope();
        let (mut from, mut tokens, mut numbers) = (0, Vec::new(), Vec::new());
        for group in draws.chunk_by(|a, b| a.rank() == b.rank()) {
            let to = from + group.len();
            let rows = if group.len() == draws.len() { rows } else { rows.slice(0, from as i32..to as i32) };
            let adjusted = added(rows, group, vocab);
            let picked = match group[0].kind {
                Kind::Best => adjusted.argmax(-1, true),
                Kind::Warm => picked(adjusted, group, None, wide),
                Kind::Ranked => picked(adjusted, group, Some(ranked(adjusted, group, vocab, wide)), wide),
            };
            let logprob = rows.take_along_axis(picked, -1) - rows.logsumexp(-1, true);
            numbers.push(scope.concat(&[logprob, adjusted.take_along_axis(picked, -1)], -1));
            tokens.push(picked);
            from = to;
        }
        let join = |parts: &[Array<'s>]| if let [alone] = *parts { alone } else { scope.concat(parts, 0) };
        Self { tokens: join(&tokens), numbers: join(&numbers) }
    }
}

/// A column of what each draw says.
fn column<'s>(scope: &'s Scope<'s>, group: &[Draw], number: impl Fn(&Draw) -> f32) -> Array<'s> {
    let numbers: Vec<f32> = group.iter().map(number).collect();
    scope.array(&numbers, &[group.len(), 1])
}

/// The rows with what is added to them.
fn added<'s>(rows: Array<'s>, group: &[Draw], vocab: usize) -> Array<'s> {
    let all: Vec<f32> = group.iter().flat_map(|draw| draw.additions.as_deref().unwrap_or_default()).copied().collect();
    if all.is_empty() { rows } else { rows + rows.scope().array(&all, &[group.len(), vocab]) }
}

/// Which tokens are kept by rank: top_k, top_p and min_p.
fn ranked<'s>(rows: Array<'s>, group: &[Draw], vocab: usize, wide: DType) -> Array<'s> {
    let (scope, last) = (rows.scope(), vocab as i32);
    let count = |kept: Array<'s>| kept.as_type(DType::I32).sum(-1, true);
    let counts: Vec<i32> = group.iter().map(|draw| draw.top_k.min(last)).collect();
    let top_k = scope.array(&counts, &[group.len(), 1]);
    let sorted = -(-rows).sort(-1);
    let peak = sorted.slice(-1, 0..1);
    // Shares are those of the tokens that top_k has left.
    let among = scope.arange(0, last, DType::I32).lt(top_k);
    let masses = among.select((sorted - peak).exp(), 0.0).as_type(wide);
    let sums = masses.cumsum(-1);
    let target = sums.slice(-1, -1..) * column(scope, group, |draw| draw.top_p).as_type(wide);
    // A token is kept while those before it are not enough.
    let by_p = count((sums - masses).lt(target)).maximum(scope.array(&[1], &[1, 1]));
    let by_min_p = count(rows.ge(peak + column(scope, group, |draw| draw.least)));
    let kept = top_k.minimum(by_p).minimum(by_min_p);
    let edge = sorted.take_along_axis(kept - scope.array(&[1], &[1, 1]), -1);
    // Of those that are equal to the worst, the first ones.
    let (above, equal) = (rows.gt(edge), rows.eq(edge));
    let first = equal.as_type(DType::I32).cumsum(-1).le(kept - count(above));
    above.logical_or(equal.logical_and(first))
}

/// The token of each row at the place of its random number, of those that are kept, or near enough to the largest.
fn picked<'s>(rows: Array<'s>, group: &[Draw], kept: Option<Array<'s>>, wide: DType) -> Array<'s> {
    let scope = rows.scope();
    let peak = rows.max(-1, true);
    let kept = kept.unwrap_or_else(|| rows.ge(peak + column(scope, group, |draw| draw.least)));
    let weights = ((rows - peak) * column(scope, group, |draw| draw.scale)).exp();
    let sums = kept.select(weights, 0.0).as_type(wide).cumsum(-1);
    let total = sums.slice(-1, -1..);
    let target = total * column(scope, group, |draw| draw.uniform).as_type(wide);
    // Where rounding has the target at the end of all, the last token with any weight.
    sums.gt(target).logical_or(sums.ge(total)).argmax(-1, true)
}
