//! The door to MLX, by hand: what it does, what it refuses, and what becomes of it across threads.
//!
//! Needs what `cargo xtask setup` brings.

mod arrays;
mod cache;
mod children;
mod kit;
mod operations;
mod refused;
mod threads;

/// What a child is to do, which is this program started again.
#[test]
fn child() {
    children::task();
}
