//! (being written)
#![forbid(unsafe_code)]

mod batch;
#[cfg(feature = "chat")]
pub mod chat;
pub mod cost;
mod detokenizer;
mod error;
mod interrupt;
mod limits;
mod model;
mod outputs;
pub mod sampling;
mod sequence;
mod session;
mod slots;
mod stop;
#[cfg(feature = "testing")]
pub mod testing;
mod token;
mod tokenizer;

pub use batch::{Batch, Entry, Want};
pub use detokenizer::Detokenizer;
pub use error::{Error, ErrorKind, Result};
pub use interrupt::Interrupt;
pub use limits::{Capabilities, Limits, Usage};
pub use model::{Model, ModelInfo, SessionOptions};
pub use outputs::{Outputs, Rows, Sampled};
pub use sampling::params::Sampling;
pub use sequence::Sequence;
pub use session::{OpenOptions, Session};
pub use slots::Slots;
pub use stop::{Passed, StopStrings};
pub use token::Token;
pub use tokenizer::{Special, SpecialTokens, TokenFlags, Tokenizer, Vocab, VocabKind};
