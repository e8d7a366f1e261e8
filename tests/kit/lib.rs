//! What the tests that cross crates and the benches share.
//!
//! - [`child`]: a case in a process of its own, where an abort, a signal or a hang is an answer and not the end of the tests;
//! - [`expectation`]: failures that are expected, and what comes of one that is not there any more;
//! - [`greedy`]: runs of greedy decoding, and when two of them agree;
//! - [`peer`]: the same in C, over the same object;
//! - [`prompts`]: what is decoded;
//! - [`samplers`]: what llama.cpp's own samplers leave of a row of logits;
//! - [`script`]: what Python packages make of the same input;
//! - [`trace`]: what a session computed, and when two runs agree;
//! - [`heap`] and [`heap_so_far`]: what a piece of code asks the allocator for.
#![deny(unsafe_code)]

pub mod child;
pub mod expectation;
pub mod greedy;
pub mod peer;
pub mod prompts;
#[allow(unsafe_code, reason = "a global allocator that counts, and llama.cpp's own detokeniser to compare with")]
mod raw;
pub mod samplers;
pub mod script;
pub mod trace;

pub use raw::{
    counting::{Counting, Heap, heap, heap_so_far},
    detokenize::LlamaDetokenizer,
};
