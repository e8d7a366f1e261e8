//! The one place with `unsafe`: owners of MLX's objects, with pointers inside and none outside.
//!
//! [`Runtime`] is the library with a stream of this thread. A [`Node`] is a handle that is known to live; whoever made it owns it: an [`Arena`],
//! which frees all of its own in one crossing, or a [`Held`], which frees one. What `mlx_door.h` asks of a caller is established here or by the
//! types: nothing in this module trusts the crate's other modules with memory safety.

mod api;
mod arena;
mod array;
mod ops;

pub(crate) use api::Runtime;
pub(crate) use arena::Arena;
pub(crate) use array::{Failure, Fresh, Held, Info, Made, Node};
pub(crate) use ops::{Attend, Binary, Reduction, Rope, Unary};
