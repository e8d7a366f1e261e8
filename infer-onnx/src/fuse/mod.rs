//! Models rewritten for operators of our own: what an encoder does in several steps after each matrix product, put together.
//!
//! The operators are of the domain `infer`, take 32-bit floats, and are made only here:
//!
//! - `BiasGelu(x, bias)`: the GELU of `x + bias`;
//! - `AddNormalization(x, bias, residual, scale, shift)`, with an `epsilon`: the layer normalisation of `x + bias + residual`;
//! - `MaskedSoftmax(x, mask)`: the softmax of `x + mask` over the last axis;
//! - `BiasHeads(x, bias)`, with `heads` and `transposed`: `x + bias` by heads, as attention wants it.
//!
//! What is written is small whatever the model weighs: large weights stay in its file, and are named there.
//!
//! **Nothing else changes.** A pattern is put together only where the graph itself says that it computes the same, up to how sums are rounded,
//! whatever is fed: biases, scales and shifts are 32-bit weights of one width that nobody can feed, and the width of what they are added to is
//! told by the matrix before. What is left out is needed by the pattern alone. A model with graphs inside its graph, with functions, or that
//! uses the domain `infer` by itself is left as it is, and so is one that contradicts itself: the runtime says why.

mod attributes;
mod constant;
mod float;
mod gelu;
mod graph;
mod heads;
mod norm;
mod plan;
mod read;
mod softmax;
mod write;

#[cfg(test)]
mod tests;

use crate::raw::operators::{DOMAIN, VERSION};
use graph::{Graph, ValueId};
use infer_core::Result;
use plan::Plan;
use std::path::Path;

/// A model that was rewritten.
pub(crate) struct Fused {
    /// The file.
    pub(crate) model: Vec<u8>,
    /// How many operators of our own are in it.
    pub(crate) operators: usize,
}

/// Rewrites a model. `file` is the name of the file that `model` is, as seen from the folder it is in; `None`: it stays as it is.
///
/// # Errors
/// [`InvalidModel`](infer_core::ErrorKind::InvalidModel) when it is no ONNX model.
pub(crate) fn fuse(model: &[u8], file: &str) -> Result<Option<Fused>> {
    let name = Path::new(file);
    let Some(graph) = read::graph(model, name)? else { return Ok(None) };
    let plan = Plan::of(&graph);
    let operators = plan.operators();
    if operators == 0 {
        return Ok(None);
    }
    Ok(Some(Fused { model: write::model(model, &graph, &plan, file)?, operators }))
}

/// An operator of our own, and the nodes that it stands for.
struct Operator {
    name: &'static str,
    inputs: Vec<ValueId>,
    attributes: Vec<(&'static str, Attribute)>,
    /// By their index; the last step of the pattern is the first here, and the new one stands where it stood.
    nodes: Vec<usize>,
}

enum Attribute {
    Float(f32),
    Int(i64),
}

/// The operator of our own, if any, that does what this node and those before it do.
fn operator_at(graph: &Graph<'_>, floats: &[bool], index: usize) -> Option<Operator> {
    gelu::find(graph, index)
        .or_else(|| norm::find(graph, index))
        .or_else(|| softmax::find(graph, floats, index))
        .or_else(|| heads::find(graph, index))
}
