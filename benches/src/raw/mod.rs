//! The other side of the comparison: the same passes straight on the table, as a C program would make them.

mod context;
mod embed;
mod graph;
mod spy;

pub use context::{Context, argmax};
pub use graph::CGraph;
pub use spy::Spy;
