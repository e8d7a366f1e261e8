//! What the tests of all crates share. It knows none of them.
//!
//! - [`child`]: a case in a process of its own, where an abort, a signal or a hang is an answer and not the end of the tests;
//! - [`Folder`]: a folder that is gone with its test;
//! - [`Listener`]: what is logged, in the hands of a test; [`heard`]: what is logged, heard by a subscriber that panics where it is asked to;
//! - [`program()`]: a script that a test runs;
//! - [`block_on`]: runs a future;
//! - [`Random`]: the same numbers for the same seed, for ever;
//! - `orders` (with `--cfg shuttle`): what threads share, in orders of a checker's choice;
//! - [`heap`], [`heap_so_far`] and [`peak`]: what a piece of code asks the allocator for, in a program that has installed [`Counting`].
#![deny(unsafe_code)]

mod block_on;
pub mod child;
mod folder;
mod heard;
mod listener;
#[cfg(shuttle)]
pub mod orders;
mod program;
mod random;
#[allow(unsafe_code, reason = "a global allocator that counts")]
mod raw;

pub use block_on::block_on;
pub use folder::Folder;
pub use heard::heard;
pub use listener::{Listener, text};
pub use program::program;
pub use random::Random;
pub use raw::counting::{Counting, Heap, heap, heap_so_far, peak};
