//! A model's folder as Hugging Face's tools lay it out: its tokenizer, and what the files beside it say.
//!
//! `tokenizer.json` is read by the crate `tokenizers`, once it has been looked at here: [`Tokenizer`]. Which of its tokens have a role or end a
//! text, and the chat template, are in other files: [`Settings`]; how an encoder pools, in still others: [`EncoderConfig`]. Errors name the file; a backend adds its own name to them.

mod encoder_config;
mod settings;
mod tokenizer;

pub use encoder_config::EncoderConfig;
pub use settings::{Settings, read_if_there};
pub use tokenizer::{PairForm, Tokenizer};

use crate::{Error, ErrorKind};

/// The error of a file that is damaged, or says what cannot be.
fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidModel, message)
}
