//! The vocabulary of `infer`: what a session, a sequence and a batch are, the same for every runtime.
//!
//! This crate has no native code, no `unsafe` and, without features, no dependency. A backend (`infer-llama`, …) fills
//! it; whatever drives a model (a generator, an engine, a scheduler of your own) is written against it once.
//!
//! | word | here | what it is |
//! |---|---|---|
//! | **model** | [`Model`], [`ModelInfo`] | an open model file, and what it says of itself |
//! | **token** | [`Token`] | a number that stands for a piece of text |
//! | **vocabulary** | [`Vocab`] | the bytes of each token: plain data, usable on any thread |
//! | **tokenizer** | [`Tokenizer`], [`Detokenizer`] | text to tokens, and back one token at a time |
//! | **session** | [`Session`] | a model at work on one thread: it holds sequences and runs passes |
//! | **sequence** | [`Sequence`] | a handle on the tokens whose keys and values a session holds |
//! | **cell** | [`Usage`] | room in the KV cache for one position |
//! | **batch** | [`Batch`], [`Want`] | what one pass is to append to which sequences, and what is wanted back |
//! | **pass** | [`Session::decode`] | one forward pass over a batch: prefill (many tokens of one sequence), decode (one of each) or both |
//! | **outputs** | [`Outputs`] | a view of what the last pass brought: tokens, logits, hidden states, scores |
//! | **encoder** | [`Encoder`], [`Pooling`] | a model that turns texts into vectors or scores: embeddings, classification, reranking |
//! | **sampling** | [`Sampling`], [`sampling`] | how a next token is chosen, as data |
//! | **constraint** | [`Constraint`] | what generated text must be: a schema, an expression, a grammar |
//! | **cost** | [`cost`] | what a model needs, from its dimensions alone: bytes, KV bytes, FLOPs |
//! | **saved state** | [`Session::save`], [`state`](state/index.html) | a sequence as bytes, to go on with in another session of the same model |
//! | **chat template** | [`chat`](chat/index.html) | how a conversation becomes a prompt |
//!
//! # Example
//! A prompt, and an answer token by token. The model is the scripted one of [`testing`](testing/index.html); with a
//! real one only the first line is another.
//!
//! ```
//! # #[cfg(feature = "testing")] {
//! use infer_core::{testing::*, *};
//!
//! let model = ScriptedModel::new(Script::new().with_line("The capital of France is", " Paris."));
//! let tokenizer = model.tokenizer();
//! let mut session = model.session(&SessionOptions::new())?;
//! let mut prompt = Vec::new();
//! tokenizer.encode("The capital of France is", Special::ADD, &mut prompt)?;
//!
//! let seq = session.open(&OpenOptions::default())?;
//! session.sample_with(&seq, &Sampling::default(), &prompt)?;
//! let (mut batch, mut next, mut answer) = (Batch::new(), prompt, Detokenizer::new(tokenizer.vocab().clone()));
//! let mut text = String::new();
//! loop {
//!     batch.clear();
//!     let entry = batch.push(&seq, &next, Want::Token);
//!     session.decode(&batch)?;
//!     let token = session.outputs().token(entry).expect("one was wanted");
//!     if tokenizer.vocab().is_end(token) {
//!         break;
//!     }
//!     text.push_str(answer.push(token)?);
//!     next = vec![token];
//! }
//! assert_eq!(text, " Paris.");
//! # }
//! # Ok::<(), infer_core::Error>(())
//! ```
//!
//! Several sequences are as many entries of the batch; a long prompt is fed in chunks with [`Want::Nothing`] for all but
//! the last; a shared prefix is a [`fork`](Session::fork).
//!
//! # Decisions
//! - **Handles are owned, views are borrowed.** A [`Sequence`] has no lifetime, so it can be kept in a request, sent, and
//!   dropped on any thread; what is wrong with it when it is used is an [`Error`], never undefined. [`Outputs`] are a view
//!   into the runtime's memory, without a copy; the next call that changes the session ends it, and using it later does
//!   not compile.
//! - **One check for all.** [`Slots`] is a session's side of its sequences. It checks a batch for every backend, so native
//!   code sees only what is right, and each mistake is the same error everywhere. It is the only place where a length grows,
//!   and only after success: a pass is all or nothing.
//!   [`Seats`] and [`Results`] are the rest of what every session does alike: tokens and samplers, and what a pass brings.
//! - **What is drawn is a function of sampling, prompt and tokens.** There is no generator with a state: the random number
//!   of a position is computed from seed and position. So a sequence that was forked, cut, evicted, or rebuilt in another
//!   process goes on with the same tokens, and only tokens have to be kept.
//! - **A session is not `Send`,** for native ones may not be. What other threads need ([`ModelInfo`], [`Tokenizer`],
//!   [`Interrupt`], sequences, batches) is, and is taken out of it.
//! - **A model that cannot do a thing says so.** [`Capabilities`] has what a scheduler branches on, and
//!   [`Unsupported`](ErrorKind::Unsupported) is an answer it can work with: compute the sequence again.
//! - **One error type,** opaque and a pointer wide; [`ErrorKind`] says for each kind what a caller can do.
//!
//! # Features
//! | feature | brings | default |
//! |---|---|---|
//! | `chat` | [`chat`](chat/index.html): chat templates, by `minijinja` | no |
//! | `constraint` | what a [`Constraint`] asks is kept, by `llguidance` | no |
//! | `half` | [`sampling`] reads logits of 16 bits: `f16` and `bf16` of the crate `half` | no |
//! | `serde` | `Serialize` and `Deserialize` for plain data: sampling, tokens, vocabulary, model facts | no |
//! | `state` | [`state`](state/index.html): the frame of saved sequences, for backends, with checksums by `crc-fast` and `twox-hash` | no |
//! | `tokenizers` | [`huggingface`](huggingface/index.html): model folders as Hugging Face's tools lay them out, with `tokenizer.json` by the crate `tokenizers` | no |
//! | `testing` | [`testing`](testing/index.html): a model and a session in plain Rust that follow a script and fail where it says | no |
//!
//! Features only add.
#![forbid(unsafe_code)]

mod batch;
#[cfg(feature = "chat")]
pub mod chat;
mod constraint;
pub mod cost;
mod detokenizer;
mod encoder;
mod error;
#[cfg(feature = "tokenizers")]
pub mod huggingface;
mod interrupt;
mod limits;
pub mod machine;
mod model;
mod outputs;
mod padded;
mod results;
pub mod sampling;
mod seats;
mod sequence;
mod session;
mod slots;
#[cfg(feature = "state")]
pub mod state;
mod stop;
#[cfg(feature = "testing")]
pub mod testing;
mod token;
mod tokenizer;
mod vector_table;

pub use batch::{Batch, Entry, Want};
pub use constraint::{Constraint, ConstraintFormat, Whitespace};
pub use detokenizer::Detokenizer;
pub use encoder::{Encoder, EncoderInfo, EncoderOptions, Pooling, Vectors};
pub use error::{Error, ErrorKind, Result};
pub use interrupt::Interrupt;
pub use limits::{Capabilities, Limits, Usage};
pub use model::{AdapterSource, KvLayout, Model, ModelInfo, SessionOptions};
pub use outputs::{Outputs, Rows, Sampled};
pub use padded::{PaddedPasses, PassRoom};
pub use results::Results;
pub use sampling::{breakers::DryBreakers, params::Sampling};
pub use seats::Seats;
pub use sequence::Sequence;
pub use session::{OpenOptions, Session};
pub use slots::Slots;
pub use stop::{Passed, StopStrings};
pub use token::Token;
pub use tokenizer::{Special, SpecialTokens, TokenFlags, Tokenizer, Vocab, VocabKind};
pub use vector_table::VectorTable;
