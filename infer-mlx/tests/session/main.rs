//! Sessions of tiny models, held against the same tokens computed at once.

#[path = "../kit/mod.rs"]
mod kit;

mod batches;
mod cuts;
mod draws;
mod expected;
mod interrupts;
mod mistakes;
mod random;
mod states;
mod tiny;
