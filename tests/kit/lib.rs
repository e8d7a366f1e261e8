//! What the tests that cross crates and the benches share.
//!
//! - [`expectation`]: failures that are expected, and what comes of one that is not there any more;
//! - [`greedy`]: runs of greedy decoding, and when two of them agree;
//! - [`peer`]: the same in C, over the same object;
//! - [`prompts`]: what is decoded;
//! - [`samplers`]: what llama.cpp's own samplers leave of a row of logits;
//! - [`script`]: what Python packages make of the same input;
//! - [`trace`]: what a session computed, and when two runs agree;
//!
//! Of `test_kit`, which the tests of single crates have too: [`child`], and [`heap`] with what belongs to it.
#![deny(unsafe_code)]

pub mod expectation;
pub mod greedy;
pub mod peer;
pub mod prompts;
#[allow(unsafe_code, reason = "llama.cpp's own detokeniser to compare with")]
mod raw;
pub mod samplers;
pub mod script;
pub mod trace;

pub use raw::detokenize::LlamaDetokenizer;
pub use test_kit::{Counting, Heap, child, heap, heap_so_far};
