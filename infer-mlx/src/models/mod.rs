//! The architectures: one module each, to be read beside its paper.
//!
//! A module reads what it needs of `config.json`, says which weights it wants ([`Plan`]), and is a [`Decoder`]: tokens to hidden states to logits.
//! How tokens of several sequences lie in a batch, where keys and values are kept, and at which position a token is, is the [`Step`]'s.
//! `docs/adding_an_mlx_model.md` goes through one.

mod bert;
mod gemma3;
mod llama;
mod parts;
mod phi3;
mod qwen2;
mod qwen3;

pub(crate) use bert::Bert;

use crate::{Array, config::Config, kv::CacheShape, step::Step, weights::Plan};
use infer_core::{Result, cost::Dims};

/// A language model, as far as its weights go.
pub(crate) trait Decoder {
    /// What each layer keeps of a token.
    fn layers(&self) -> &[CacheShape];

    /// Hidden states after the last norm, `[tokens, width]`, of the step's tokens.
    fn forward<'s>(&self, step: &mut Step<'_, 's>) -> Array<'s>;

    /// Logits, `[rows, vocabulary]`, of rows of these hidden states.
    fn head<'s>(&self, hidden: Array<'s>) -> Array<'s>;
}

/// What an architecture makes of a folder.
pub(crate) enum Network {
    /// Goes on with a text.
    Decoder(Box<dyn Decoder>),
    /// Reads one.
    Encoder(Box<Bert>),
}

/// A network whose weights are planned, and what is known of it.
pub(crate) struct Built {
    pub(crate) network: Network,
    pub(crate) dims: Dims,
    /// Positions it was trained for.
    pub(crate) context: usize,
}

type Build = fn(&Config, &mut Plan<'_>) -> Result<Built>;

/// All architectures, by what `model_type` in `config.json` calls them.
const ARCHITECTURES: &[(&str, Build)] = &[
    ("llama", llama::build),
    ("mistral", llama::build),
    ("qwen2", qwen2::build),
    ("qwen3", qwen3::build),
    ("gemma3_text", gemma3::build),
    ("gemma3", gemma3::build_language_part),
    ("phi3", phi3::build),
    ("bert", bert::build),
];

/// Plans the network that a `config.json` describes.
///
/// # Errors
/// [`Unsupported`](infer_core::ErrorKind::Unsupported) for an architecture, or a choice in one, that is not built in;
/// [`InvalidModel`](infer_core::ErrorKind::InvalidModel) for sizes that cannot be.
pub(crate) fn build(config: &Config, plan: &mut Plan<'_>) -> Result<Built> {
    let name = match config.text("model_type")? {
        Some(name) => name,
        None => return Err(config.invalid("`model_type` is missing; the name of an architecture is wanted")),
    };
    match ARCHITECTURES.iter().find(|(known, _)| *known == name) {
        Some((_, build)) => build(config, plan),
        None => {
            let known: Vec<_> = ARCHITECTURES.iter().map(|(known, _)| *known).collect();
            let message =
                format!("`model_type` is {name:?}, an architecture that is not built in; {} are", known.join(", "));
            Err(config.unsupported(message))
        }
    }
}
