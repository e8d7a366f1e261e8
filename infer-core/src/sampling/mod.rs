//! How a next token is chosen.
//!
//! [`Sampling`] says it as data, [`Sampler`] does it on a row of logits in host memory. The steps and their order are those
//! of llama.cpp's usual chain, and so is what each leaves: the same tokens, with probabilities within 1e-5. *p* is the softmax of
//! the logits of what the step before has left, at temperature 1.
//!
//! | step | what it does | source |
//! |---|---|---|
//! | [`constraint`](Sampling::constraint) | leaves the tokens that can follow | M. Moskal et al., *llguidance*, 2024 |
//! | [`logit_bias`](Sampling::logit_bias) | is added | |
//! | penalties | for tokens among the last [`penalty_window`](Sampling::penalty_window), *n* times: a positive logit is divided by [`repetition_penalty`](Sampling::repetition_penalty), another multiplied; *n* × [`frequency_penalty`](Sampling::frequency_penalty) + [`presence_penalty`](Sampling::presence_penalty) is subtracted | N. Keskar et al., *CTRL*, 2019, which only divides; OpenAI's API for the other two |
//! | DRY | where the last *l* tokens stand once more within [`dry_window`](Sampling::dry_window), *l* at least [`dry_allowed_length`](Sampling::dry_allowed_length), the token that followed them then loses [`dry_multiplier`](Sampling::dry_multiplier) × [`dry_base`](Sampling::dry_base)^(*l* − allowed), *l* the largest for that token; *l* reaches back to the last of the [`dry_breakers`](Sampling::dry_breakers), and one that is a single token loses nothing | P. E. Weidmann (p-e-w), *DRY: A modern repetition penalty*, text-generation-webui #5677, 2024 |
//! | [`top_n_sigma`](Sampling::top_n_sigma) | keeps logits of at least max − *n*σ, σ the standard deviation of all that are finite | C. Tang et al., *Top-nσ: Not All Logits Are You Need*, 2024 |
//! | [`top_k`](Sampling::top_k) | keeps the *k* largest | A. Fan, M. Lewis, Y. Dauphin, *Hierarchical Neural Story Generation*, ACL 2018 |
//! | [`typical_p`](Sampling::typical_p) | keeps those with the smallest \|−ln *p* − H\|, H = −Σ *p* ln *p*, until Σ *p* is more than this | C. Meister et al., *Locally Typical Sampling*, TACL 2023 |
//! | [`top_p`](Sampling::top_p) | keeps the most probable ones until Σ *p* is this or more | A. Holtzman et al., *The Curious Case of Neural Text Degeneration*, ICLR 2020 |
//! | [`min_p`](Sampling::min_p) | keeps those with *p* of at least `min_p` × the largest | N. N. Minh et al., *Turning Up the Heat*, ICLR 2025 |
//! | XTC | with probability [`xtc_probability`](Sampling::xtc_probability): of those with *p* of at least [`xtc_threshold`](Sampling::xtc_threshold) only the least probable stays | P. E. Weidmann, *Exclude Top Choices*, text-generation-webui #6335, 2024 |
//! | temperature | logits are divided by T = [`temperature`](Sampling::temperature). With a [`dynatemp_range`](Sampling::dynatemp_range) *r*, T = a + (b − a) (H / ln *n*)^[`dynatemp_exponent`](Sampling::dynatemp_exponent), *n* tokens being left, a = max(0, temperature − *r*), b = temperature + *r* | kalomaze, *Dynamic Temperature*, 2023 |
//! | the draw | with [`uniform`]; at T = 0 the most probable token | |
//!
//! Mirostat is not among them: its μ is carried from draw to draw and is no function of the tokens, so that a sequence that was
//! forked, evicted or moved would go on otherwise.
//!
//! Two tokens of the same logit stand in the order of their ids, so nothing depends on how a row was searched. The draw
//! takes the tokens that are left in the order of their ids, each as wide as its probability, and the token at the place
//! of the random number.
//!
//! # Repeatable by construction
//! A draw is a function of the logits, the `Sampling`, the prompt and the tokens fed so far. There is no generator whose state
//! could be lost: the random numbers of a position, one for the draw and one for XTC, are computed from the seed and the
//! position alone. So a sequence that was forked, cut, evicted and computed again, or moved to another process, goes on as if
//! nothing had happened, given the same logits. The arithmetic is plain `f32` and `f64` in a fixed order, exponentials included,
//! and so the same on every machine; only logarithms (the threshold of `min_p`, log-probabilities, the dynamic temperature) and
//! the latter's power are the platform's.

pub(crate) mod breakers;
mod builders;
mod chain;
#[cfg(feature = "constraint")]
mod constrained;
#[cfg(not(feature = "constraint"))]
#[path = "unconstrained.rs"]
mod constrained;
mod draw;
mod dry;
mod logit;
pub(crate) mod params;
mod penalties;
mod probability;
mod row;
mod sampler;
#[cfg(test)]
mod tests;
mod truncation;
mod uniform;

#[cfg(doc)]
use crate::Sampling;

pub use constrained::LookAhead;
pub use logit::Logit;
pub use probability::log_probability;
pub use sampler::Sampler;
pub use uniform::uniform;
