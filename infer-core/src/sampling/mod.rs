//! How a next token is chosen.
//!
//! [`Sampling`](crate::Sampling) says it as data, [`Sampler`] does it on a row of logits in host memory. The steps and
//! their order are those of llama.cpp's usual chain:
//!
//! 1. [`logit_bias`](crate::Sampling::logit_bias) is added;
//! 2. repetition, frequency and presence penalties, over the last tokens;
//! 3. [`top_k`](crate::Sampling::top_k), 4. [`top_p`](crate::Sampling::top_p), 5. [`min_p`](crate::Sampling::min_p): each
//!    keeps the most probable of what the one before has left, at temperature 1;
//! 6. [`temperature`](crate::Sampling::temperature), and the draw with [`uniform`].
//!
//! Two tokens of the same logit stand in the order of their ids, so nothing depends on how a row was searched. The draw
//! takes the tokens that are left in the order of their ids, each as wide as its probability, and the token at the place
//! of the random number.
//!
//! # Repeatable by construction
//! A draw is a function of the logits, the `Sampling`, the prompt and the tokens fed so far. There is no generator
//! whose state could be lost: the random number of a position is computed from the seed and the position alone. So a
//! sequence that was forked, cut, evicted and computed again, or moved to another process, goes on as if nothing had
//! happened, given the same logits. The arithmetic is plain `f32` and `f64` in a fixed order, exponentials included, and
//! so the same on every machine; only logarithms (the threshold of `min_p`, log-probabilities) are the platform's.

mod draw;
mod logit;
pub(crate) mod params;
mod penalties;
mod row;
mod sampler;
#[cfg(test)]
mod tests;
mod truncation;
mod uniform;

pub use logit::Logit;
pub use sampler::Sampler;
pub use uniform::uniform;
