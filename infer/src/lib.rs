//! One safe API over native inference runtimes.
//!
//! This is the crate to depend on: it opens a model file with the backend that reads it, serves many requests on it at once or
//! generates a text by hand, and re-exports the vocabulary of [`infer_core`], so that nothing else is needed.
//!
//! ```
//! use infer::{Engine, Request, Sampling};
//!
//! fn main() -> infer::Result<()> {
//! #   if !infer::Backend::Llama.is_compiled_in() { return Ok(()) }
//!     let path = "SmolLM2-135M-Instruct.Q4_1.gguf";
//! #   let path = build_support::fixtures::model("smollm2").expect("`cargo xtask setup` brings it");
//!     let engine = Engine::open(path)?;
//!     let request = Request::text("The capital of France is")
//!         .with_sampling(Sampling::default().with_temperature(0.7).with_seed(1))
//!         .with_max_tokens(16)
//!         .with_stop("\n");
//!     for piece in engine.generate(request) {
//!         print!("{}", piece?.text);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! # The words
//!
//! | word | what it is |
//! | --- | --- |
//! | [`Model`] | an open file: weights (mapped, shared by its sessions), vocabulary, what the file says of itself |
//! | [`Session`] | a model at work: the KV cache of some sequences, and forward passes over them |
//! | [`Sequence`] | an owned handle on the keys and values of one text; dropping it frees them |
//! | [`Batch`] | what one pass is to do: tokens to append to sequences, and what is wanted back |
//! | [`Outputs`] | what the last pass brought, borrowed from the session: drawn tokens, logits, hidden states |
//! | [`Sampling`] | how a token is drawn, as plain data; seeded, the same draws after a fork, a cut or a rebuild |
//! | [`Constraint`] | what a text must be: a JSON schema, an expression, a grammar; a part of [`Sampling`] |
//! | [`Tokenizer`], [`Detokenizer`] | text to tokens and back, never half a character |
//! | [`Encoder`], [`Pooling`] | texts to vectors or scores: embeddings, classification, reranking; many texts a pass |
//! | [`Request`], [`Completion`] | a text to be made: prompt, sampling, where it ends; and what it came to |
//! | [`Engine`], [`Generation`], [`Piece`] | serves many requests at once; the stream of one of them; what that brings |
//! | [`EngineStats`], [`Timeline`] | figures of an engine at work; what became of one text, and when |
//! | [`Generator`] | one text by hand, on a session |
//! | [`Interrupt`] | stops a running pass from any thread |
//! | [`Worker`], [`Ticket`] | a value pinned to a thread of its own, and the answer to come of a job for it |
//! | [`Error`], [`ErrorKind`] | what went wrong, and what a caller can do about it |
//!
//! # Depths
//!
//! - **Many texts.** [`Engine`]: the example above, from any number of threads or tasks. [`EngineBuilder`] has its knobs, and
//!   `docs/engine.md` what they do. [`ModelSource`] has the choices of opening.
//! - **A text by hand.** [`open`], [`Model::session`] and [`Generator`], on a thread of one's own.
//! - **A conversation.** [`Request::chat`], with an engine or a [`Generator::for_model`]; what is computed of each turn is only what is new.
//!   With [tools](Request::with_tools), and with reasoning told from the answer.
//! - **Structured output.** [`Sampling::with_constraint`], in a request or by hand; `docs/structured_output.md` has what is kept of a schema.
//! - **Embeddings.** [`Engine::embed`]; by hand [`Model::encoder`] makes an [`Encoder`], for models that were made for it and for decoders.
//! - **Named tensors.** `infer::onnx::Graph` runs any ONNX graph, with the feature `onnx`; `docs/onnx.md` begins with what people have.
//! - **Arrays.** `infer::mlx::Scope` makes arrays and computes with them, with the feature `mlx`; `docs/mlx.md`.
//! - **By hand.** [`Session::decode`] is one forward pass over any number of sequences. A scheduler, a beam search, a
//!   classifier are loops around it with one rule: feed `log[sequence.len()..]`.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `llama` | yes | llama.cpp for GGUF files, linked into the program; needs cmake and a C++ compiler to build |
//! | `llama-load` | no | llama.cpp as a shared library that is loaded when a model is opened; needs nothing to build |
//! | `llama-vulkan`, `llama-cuda`, `llama-metal` | no | `llama-load`, and programs may choose the library built for these GPUs: [`Library::Variant`] |
//! | `onnx` | no | ONNX Runtime for ONNX files and folders, as a shared library that is loaded when a model is opened: `infer::onnx` |
//! | `mlx` | no | MLX for folders with a `config.json` and safetensors, as a shared library that is loaded when a model is opened: `infer::mlx` |
//! | `chat` | yes | chat templates: [`chat`] |
//! | `constraint` | no | texts that keep to a JSON schema, an expression or a grammar: [`Constraint`] |
//! | `serde` | no | `Serialize` and `Deserialize` for plain data: sampling, tokens, vocabularies, facts of a model |
//!
//! They only add. With both kinds of llama.cpp the linked one is used, unless [`ModelSource::with_library`] says
//! otherwise. Without any backend the crate compiles, and [`open`] says which feature is missing.
//!
//! # Why it is like this
//!
//! - **One call is one forward pass.** Small things cross into native code and back; the weights and the cache stay
//!   there, and logits are looked at in place.
//! - **Traits where runtimes differ.** [`Model`], [`Session`] and [`Tokenizer`] are object-safe: a virtual call a pass is
//!   nothing beside the pass, and what is built on them works on every runtime, in another process, and on the scripted
//!   session that tests use (`infer_core::testing`).
//! - **Handles are owned, views are borrowed.** A sequence can be kept anywhere and sent to any thread; what looks into
//!   the runtime's memory cannot outlive the next call, and the compiler says so.
//! - **What is wrong is an error before native code sees it**, and says what, where and what to do.
#![deny(unsafe_code)]

mod backends;
#[cfg(feature = "chat")]
mod conversation;
mod device;
mod engine;
mod format;
mod generator;
mod inspect;
mod panics;
mod piece;
mod prompt;
mod reader;
mod request;
mod source;
mod sync;
mod variant;
mod worker;

pub use backends::*;
#[cfg(feature = "chat")]
pub use conversation::chat_template;
pub use device::{Device, Installed, Runtime, devices, installed, runtimes};
pub use engine::{
    Answer, Blocking, Engine, EngineBuilder, EngineStats, Generation, Happened, StepTimes, Timeline, TimelineEvent,
    WhenFull,
};
pub use generator::{Generator, Pieces};
pub use infer_core::*;
pub use inspect::{Inspection, ModelKind, inspect};
pub use piece::{Completion, Finish, FinishReason, Piece, Stats};
pub use request::{Overflow, Prompt, Request};
pub use source::{Library, ModelSource, open};
pub use variant::Variant;
pub use worker::{Ticket, Turn, Worker};

/// The examples of the README and of the topics in `docs/` compile, and run.
#[cfg(doctest)]
mod topics {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/threads.md")]
    struct Threads;
    #[doc = include_str!("../../docs/linking.md")]
    struct Linking;
    #[doc = include_str!("../../docs/errors.md")]
    struct Errors;
    #[doc = include_str!("../../docs/structured_output.md")]
    struct StructuredOutput;
    #[doc = include_str!("../../docs/kv_layout.md")]
    struct KvLayout;
    #[doc = include_str!("../../docs/engine.md")]
    struct Engine;
    #[doc = include_str!("../../docs/onnx.md")]
    struct Onnx;
    #[doc = include_str!("../../docs/mlx.md")]
    struct Mlx;
    #[cfg(feature = "chat")]
    #[doc = include_str!("../../docs/tools.md")]
    struct Tools;
}
