//! (being written)
#![deny(unsafe_code)]

mod cells;
mod convert;
mod devices;
mod error;
pub mod gguf;
mod llama;
mod log;
mod memory;
mod model;
mod options;
#[allow(unsafe_code, reason = "owners of llama.cpp's objects; each block says why it holds")]
mod raw;
mod session;
mod threads;
mod tokenizer;

pub use devices::{Device, DeviceKind};
pub use llama::Llama;
pub use memory::{Available, available_memory};
pub use model::Model;
#[cfg(feature = "load")]
pub use options::LoadOptions;
pub use options::{KvLayout, KvType, LoadMode, ModelOptions, SessionOptions};
pub use session::Session;
pub use threads::available_threads;
pub use tokenizer::Tokenizer;
