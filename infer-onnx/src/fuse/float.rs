//! Which values are known to be 32-bit floats.

use super::graph::{Domain, Graph, Node, ValueId};

/// By value. Weights say their type; the rest follows from operators whose output has the type of an input, node by node, each after those that
/// it needs.
pub(super) fn floats(graph: &Graph<'_>) -> Vec<bool> {
    let mut floats: Vec<bool> = (0..graph.values.len())
        .map(|id| graph.values[id].constant.is_some_and(|at| graph.constants[at as usize].is_float()))
        .collect();
    for node in &graph.nodes {
        let inputs = telling(node, graph.inputs(node));
        if let [output, ..] = graph.outputs(node)
            && inputs.iter().any(|input| floats[input.0 as usize])
        {
            floats[output.0 as usize] = true;
        }
    }
    floats
}

/// The inputs that are of the type of the first output, as all versions of ONNX have it.
fn telling<'i>(node: &Node<'_>, inputs: &'i [ValueId]) -> &'i [ValueId] {
    let first = &inputs[..inputs.len().min(1)];
    match (node.domain, node.operator) {
        (Domain::Onnx, b"MatMul" | b"Gemm" | b"Add" | b"Sub" | b"Mul" | b"Div" | b"Concat") => inputs,
        (Domain::Onnx, b"Reshape" | b"Transpose" | b"Unsqueeze" | b"Squeeze" | b"Slice" | b"Split" | b"Gather") => {
            first
        }
        (Domain::Onnx, b"Identity" | b"Pow" | b"Sqrt" | b"Erf" | b"Gelu" | b"Softmax") => first,
        // The runtime has one with scales of another type than what they scale.
        (Domain::Onnx, b"LayerNormalization") => inputs.get(1..2).unwrap_or_default(),
        _ => &[],
    }
}
