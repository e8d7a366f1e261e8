//! What the benches share: how they measure, and how they say what they found.
//!
//! Wall-clock ratios of separate processes swing by a fifth, the same program against itself. So what is compared stands
//! in one process, with its own context each, and takes [`turns`] step by step; whatever disturbs the machine then
//! disturbs all alike. One contestant stands there twice, and the ratio of the two, *A against A*, is printed beside each
//! figure: where it is further than 2 % from 1 the machine was not quiet enough to judge, and the figure is information.
//!
//! Each bench is a program: it prints progress and a table to stderr, and one JSON line a [`Figure`] to stdout.
#![deny(unsafe_code)]

pub mod callgrind;
mod figure;
pub mod growth;
pub mod http;
mod judge;
pub mod memory;
mod random;
#[allow(unsafe_code, reason = "it calls the runtimes as a C program does, to be compared with")]
pub mod raw;
mod run;
pub mod server;
pub mod turns;

pub use figure::{Bar, Figure, Verdict};
pub use judge::judge;
pub use random::Random;
pub use run::Run;
