//! The faked door: the table written in Rust, over a tiny model that is made up.
//!
//! It does what `llama_door.h` says as long as nobody asks it not to, so that the crates above can be run over it, by Miri too; and it misbehaves on
//! request, in the ways native code would have to misbehave for a test to see what comes of it.
//!
//! The model's logits are a function of all tokens of the sequence so far and of nothing else (and of the adapters that are set), so that
//! forking, truncating and recomputing can be compared. Its vocabulary is the 256 bytes, `<s>`, `</s>`, `<eot>` and as many
//! more as asked for. A pass costs a few nanoseconds a token and about a nanosecond a logit, and allocates nothing once it is warm.
//!
//! ```
//! use infer_sys::llama::fake::{Fault, Script};
//!
//! // For the models this thread loads from now on.
//! let control = Script::new().with_context_length(64).install();
//! let api = infer_sys::llama::fake::api();
//! // … run something over `api`; then have the next pass fail as llama.cpp does when it is out of room:
//! control.plan(Fault::Result(1));
//! # let _ = api;
//! ```

mod adapters;
mod context;
mod control;
mod devices;
mod model;
mod passes;
mod process;
mod samplers;
mod state;
mod stream;
mod support;
mod table;
mod vocab;

pub use control::{Control, Fault, Kind, Live, Rows, Script};
pub use process::log;
pub use table::{TABLE, api};
