//! Operations: what they give is what their formulas say, in plain Rust.

mod elements;
#[path = "../kit/mod.rs"]
mod kit;
mod network;
mod shape;
