//! ONNX Runtime behind infer's [`Session`](infer_core::Session), and graphs with named tensors.
//!
//! # In one minute
//!
//! - [`Onnx`] is the library: found and loaded at run time, one a process.
//! - [`Model`] is a folder with a decoder or an encoder, its tokenizer and its configuration; [`Package`] says what a folder is.
//! - [`Session`] holds the keys and values of some sequences and runs passes over them:
//!   [`infer_core::Session`] says what can be done with one.
//! - [`Encoder`] turns texts into vectors or scores: embeddings, classification, reranking.
//! - [`Graph`] is any other ONNX model: named tensors in, named tensors out. A [`Binding`] keeps them in place for many runs, and a [`Pool`]
//!   lends graphs to as many threads as ask.
//! - [`Tensor`], [`TensorView`] and [`TensorViewMut`] are numbers with a shape: owned, lent, lent for writing. [`Value`] is a tensor or
//!   something else that a graph gives: a sequence, a map, or nothing.
//! - [`header`] reads model files without any native code.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = build_support::fixtures::model("smollm2-onnx")?;
//! use infer_core::{Batch, OpenOptions, Sampling, Session as _, SessionOptions, Special, Tokenizer as _, Want};
//! use infer_onnx::{LoadOptions, Model, Onnx};
//!
//! let model = Model::open(&Onnx::load(&LoadOptions::new())?, path)?;
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
//! ```
//!
//! A graph by hand is shown at [`Graph`].
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `chat` | no | chat templates that come with a model |
//! | `ndarray` | no | views of tensors as arrays of the crate `ndarray` |
//!
//! # Why it is made this way
//!
//! **Looked at before the runtime opens it.** A model names files and operators, a folder names graphs and libraries. So the file is read here first,
//! past its weights, and what leads out of its folder, is not where it is said to be, or would load code is refused by its name.
//!
//! **Keys and values stay where they are.** Where the graph attends to a buffer that it is lent, each sequence has a row of one, bound as past and
//! present at once, and a step copies none of it. Elsewhere the tensors that a run gave are the next one's past.
//!
//! **Inputs are read where they lie, outputs are lent.** A [`TensorView`] borrows the caller's memory and an output the graph's. The next run ends
//! the view: a stale one does not compile.
//!
//! **One thread a graph.** `Run` may be shared on some execution providers and on others not, so a [`Graph`] moves between threads and is not shared;
//! a [`Pool`] has several of one model, whose prepared weights are there once.
//!
//! **`unsafe` is in one module.** `raw` owns ONNX Runtime's objects, over the table of functions that `ort-sys` declares, and argues each block. The
//! crate `ort` loads the library and fills the options of sessions; its `run` allocates and its binding copies what it is lent, so values, runs
//! and bindings are our own. The rest of the crate has no pointers and no C types.
#![deny(unsafe_code)]

mod decoder;
mod encoder;
mod error;
mod fingerprint;
mod forward;
mod fuse;
mod genai;
mod graph;
pub mod header;
mod kernels;
mod kv;
mod load;
mod log;
mod model;
mod onnx;
mod optimum;
mod options;
mod package;
mod pool;
mod providers;
#[allow(unsafe_code, reason = "owners of ONNX Runtime's objects; each block says why it holds")]
mod raw;
mod session;
mod tensor;
#[cfg(test)]
#[path = "../tests/kit/model.rs"]
#[allow(dead_code, reason = "the tests of graphs use the rest")]
mod test_model;

pub use encoder::Encoder;
pub use graph::{Binding, Graph, GraphOptions, Optimization, Outputs};
pub use model::Model;
pub use onnx::{Installed, LoadOptions, Onnx};
pub use options::ModelOptions;
pub use package::{Form, Package};
pub use pool::{Pool, PoolGuard, PoolOptions, PoolStats};
pub use providers::{Provider, ProviderUse};
pub use session::Session;
pub use tensor::{
    DType, Dim, Element, Input, Map, MapView, Port, SequenceView, Tensor, TensorView, TensorViewMut, Text, Value,
    ValueType, ValueView,
};
