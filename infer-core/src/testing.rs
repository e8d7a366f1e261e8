//! A model and a session in plain Rust, for tests of whatever drives a [`Session`](crate::Session).
//!
//! There are no weights: the logits after a position are a pure function of *every* token up to it, so a sequence that
//! was forked, cut, restored or fed in other pieces gives the same numbers only when it was done right. A [`Script`]
//! says how large the session is, how its cells are laid out, what it answers, and what goes wrong and when:
//!
//! ```
//! use infer_core::testing::{Fault, Script, ScriptedModel};
//! use infer_core::{Batch, ErrorKind, Model, OpenOptions, SessionOptions, Special, Want};
//!
//! let script = Script::new().with_line("2 + 2 = ", "4").with_fault(0, Fault::Error(ErrorKind::OutOfCells));
//! let model = ScriptedModel::new(script);
//! let mut session = model.session(&SessionOptions::new())?;
//! let seq = session.open(&OpenOptions::default())?;
//! let mut prompt = Vec::new();
//! model.tokenizer().encode("2 + 2 = ", Special::NONE, &mut prompt)?;
//! session.sample_with(&seq, &Default::default(), &prompt)?;
//!
//! let mut batch = Batch::new();
//! let entry = batch.push(&seq, &prompt, Want::Token);
//! assert_eq!(session.decode(&batch).unwrap_err().kind(), ErrorKind::OutOfCells); // pass 0, as the script says
//! session.decode(&batch)?; // all or nothing: the same batch can be tried again
//! let token = session.outputs().token(entry).unwrap();
//! assert_eq!(model.tokenizer().vocab().bytes(token), Some(&b"4"[..]));
//! # Ok::<(), infer_core::Error>(())
//! ```
//!
//! Adapters are names: no file is opened, and a sequence that was opened with one has other logits, as of another model, unless
//! its scale is 0.
//!
//! A [`Hooked`] session puts a test between any session and whoever drives it.
//!
//! The [`Scripted`] session is not `Send`, as those of native runtimes may not be, nor is the [`ScriptedEncoder`]; a
//! [`ScriptedModel`] is, so it can be handed to the thread that is to make sessions of it. Everything is deterministic.

mod adapters;
mod cache;
mod encoder;
mod hooked;
mod model;
mod script;
mod session;
mod state;

pub use encoder::ScriptedEncoder;
pub use hooked::{Hooked, Hooks};
pub use model::{BOS, ByteTokenizer, EOS, IM_END, IM_START, ScriptedModel, byte_vocab};
pub use script::{Cuts, Fault, Script, Step};
pub use session::Scripted;
