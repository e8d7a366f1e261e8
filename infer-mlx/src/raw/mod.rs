//! The one place with `unsafe`: owners of MLX's objects, with pointers inside and none outside.
//!
//! [`Runtime`] is the library with a stream of this thread. A [`Node`] is a handle that lives for its lifetime, since it is borrowed from
//! whoever owns it: an [`Arena`], which frees all of its own in one crossing, or a [`Held`], which has one. What `mlx_door.h` asks of a caller is
//! established here or by the types: nothing in this module trusts the crate's other modules with memory safety.
//!
//! What each call of the table relies on, said once:
//!
//! - **Handles live.** A `Node<'s>` borrows from its owner for `'s`, and an owner frees in its `Drop` only; a [`Fresh`] is nobody else's.
//! - **The thread is the right one.** None of the types here is `Send`, so that a handle is used, and freed, by the thread that made it. (Were it
//!   not so, the door would refuse it.)
//! - **One library.** [`global`] gives a process one table, so that no handle of one library meets the other's functions.
//! - **Slices are read, as long as they are borrowed, and no longer**: `mlx_door.h` keeps none of them.

mod arena;
mod element;
mod failure;
mod global;
mod node;
mod ops;
mod process;
mod read;
mod runtime;
#[cfg(test)]
mod tests;

pub use element::Element;

pub(crate) use arena::{Arena, Held};
pub(crate) use failure::Failure;
pub(crate) use global::{of_this_thread, open};
pub(crate) use node::{Info, Node};
pub(crate) use ops::{Attend, Binary, Reduction, Rope, Unary};
pub(crate) use process::devices;
pub(crate) use read::Unread;
pub(crate) use runtime::{Fresh, Made, Runtime};
