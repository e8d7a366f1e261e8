//! A softmax of a sum with a mask.

use super::{
    Operator,
    graph::{Graph, ValueId, both_ways},
};

/// `MaskedSoftmax` in the place of this node. `floats` says which values are known to be 32-bit floats.
///
/// Which of two terms is the mask is no more than a guess: the sum stretches both.
pub(super) fn find(graph: &Graph<'_>, floats: &[bool], index: usize) -> Option<Operator> {
    let ([sum], _) = graph.operands(index, "Softmax")?;
    let (addition, terms) = graph.made_by::<2>(sum, "Add")?;
    let [x, mask] = both_ways(terms).find(|&[x, _]| is_product(graph, x))?;
    let nodes = vec![index, addition];
    let is_it = floats[x.0 as usize] && graph.is_closed(&nodes) && is_over_last(graph, index)?;
    is_it.then(|| Operator { name: "MaskedSoftmax", inputs: vec![x, mask], attributes: Vec::new(), nodes })
}

/// Before version 13, all axes from the one that is said on were one; for the last, that is the same.
fn is_over_last(graph: &Graph<'_>, index: usize) -> Option<bool> {
    let default = if graph.opset < 13 { 1 } else { -1 };
    // Before version 11 no axis was said from the end.
    Some(graph.opset >= 11 && graph.attributes(index)?.int("axis", default)? == -1)
}

/// Whether it is a matrix product, perhaps scaled.
fn is_product(graph: &Graph<'_>, id: ValueId) -> bool {
    let is_matmul = |id| graph.producer(id).is_some_and(|index| graph.nodes[index].is("MatMul"));
    let scaled = || graph.made_by::<2>(id, "Div").or_else(|| graph.made_by(id, "Mul"));
    is_matmul(id) || scaled().is_some_and(|(_, inputs)| inputs.into_iter().any(is_matmul))
}
