//! llama.cpp behind the vocabulary of `infer-core`: GGUF models, their tokenizers, and sessions that run forward passes.
//!
//! # In one minute
//!
//! - [`Llama`] is the library: linked into the program (`Llama::linked`) or loaded from a shared one (`Llama::load`).
//! - [`Model`] is an open file. Its weights are mapped and shared by everything made of it.
//! - [`Tokenizer`] turns text into tokens; [`Vocab`](infer_core::Vocab) has what the way back needs, as plain data.
//! - [`Session`] holds the keys and values of some sequences and runs passes over them:
//!   [`infer_core::Session`] says what can be done with one.
//! - [`Encoder`] turns texts into vectors or scores: embeddings, classification, reranking.
//! - [`Adapter`] (LoRA) is a small change to a model's weights; each sequence says whether it is computed with one.
//! - [`estimate`] says what a model and a session take before anything is loaded, [`Session::memory`] what they do take.
//! - [`gguf`] reads headers of model files without any native code.
//!
//! ```
//! # #[cfg(feature = "link")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = build_support::fixtures::model("smollm2")?;
//! use infer_core::{Batch, OpenOptions, Sampling, Session as _, Special, Tokenizer as _, Want};
//! use infer_llama::{Llama, Model, SessionOptions};
//!
//! let model = Model::open(&Llama::linked()?, path)?;
//! let mut session = model.session(&SessionOptions::new().with_context(512))?;
//! let seq = session.open(&OpenOptions::default())?;
//! let mut feed = Vec::new();
//! model.tokenizer().encode("The capital of France is", Special::PARSE, &mut feed)?;
//! session.sample_with(&seq, &Sampling::greedy(), &feed)?;
//!
//! let (mut batch, mut text) = (Batch::new(), Vec::new());
//! for _ in 0..4 {
//!     batch.clear();
//!     batch.push(&seq, &feed, Want::Token);
//!     session.decode(&batch)?;
//!     feed = vec![session.outputs().token(0).unwrap()];
//!     text.extend(model.tokenizer().vocab().bytes(feed[0]).unwrap());
//! }
//! assert!(String::from_utf8(text)?.contains("Paris"));
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "link"))]
//! # fn main() {}
//! ```
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `link` | no | `Llama::linked`: llama.cpp, built from its pinned sources and linked into the program |
//! | `load` | no | `Llama::load`: llama.cpp from a shared library; building needs no C or C++ compiler |
//!
//! They only add, and a constructor chooses. With neither, [`gguf`] and the types are there, and no library is.
//!
//! # Why it is made this way
//!
//! **Checked before native code sees it.** llama.cpp ends the process where other libraries return an error. So a model's
//! header is read here first and refused by the name of the field ([`gguf::Header::check`]); batches are checked by
//! [`infer_core::Slots`]; options are checked against what the library takes; and a session that does not fit the memory there
//! is ([`available_memory`]) is an error before anything is allocated.
//!
//! **A failed pass has changed nothing.** What an interrupted or failed pass left in the cache is removed. Where a model's
//! memory cannot go back, the sequences of that batch are spent, and nothing else is harmed.
//!
//! **Nothing is copied that need not be.** Weights stay in the mapped file, logits where llama.cpp wrote them:
//! [`Outputs`](infer_core::Outputs) borrows. Tokens are drawn here, from these rows, by `infer-core`'s own sampler: a draw
//! is a function of the tokens, so forks, retries and restarts all draw the same. A step in steady state allocates nothing.
//!
//! **Errors carry the log.** llama.cpp gives its reasons to a log function. Whole lines of it go to `tracing`, target
//! `llama.cpp`; and what a failing call logged is in its [`Error::log`](infer_core::Error::log).
//!
//! **Threads are kept.** A session has its own, started once, as many as the process may run at once
//! ([`available_threads`]): more than there are CPUs to run them make every pass wait.
//!
//! **`unsafe` is in one module.** `raw` owns llama.cpp's objects, one Rust value each, and argues every block. The rest of the
//! crate has no pointers and no C types.
#![deny(unsafe_code)]

mod adapter;
mod cells;
mod convert;
mod devices;
mod encoder;
mod error;
mod fingerprint;
pub mod gguf;
mod llama;
mod log;
mod memory;
mod memory_use;
mod model;
mod options;
#[allow(unsafe_code, reason = "owners of llama.cpp's objects; each block says why it holds")]
mod raw;
mod session;
mod tokenizer;

pub use adapter::Adapter;
pub use devices::{Device, DeviceKind, Placed};
pub use encoder::Encoder;
pub use infer_core::machine::{Available, available_memory, available_threads};
#[cfg(feature = "load")]
pub use llama::Installed;
pub use llama::Llama;
pub use memory_use::{BufferUse, MemoryUse, estimate};
pub use model::Model;
#[cfg(feature = "load")]
pub use options::LoadOptions;
pub use options::{KvType, LoadMode, LoadedAdapter, ModelOptions, SessionOptions, SplitMode};
pub use session::Session;
pub use tokenizer::Tokenizer;
