//! A sum with a bias, by heads.

use super::{Attribute, Operator, graph::Graph};

/// `BiasHeads` in the place of this node, which puts axes in another order.
pub(super) fn find(graph: &Graph<'_>, index: usize) -> Option<Operator> {
    let ([split], _) = graph.operands(index, "Transpose")?;
    let (reshape, [sum, shape]) = graph.made_by(split, "Reshape")?;
    let &[0, 0 | -1, heads, width] = graph.integers(shape)? else { return None };
    let (addition, _) = graph.made_by::<2>(sum, "Add")?;
    let nodes = vec![index, reshape, addition];
    // Before attributes are read, which is for each node once.
    if heads < 1 || width < 1 || !graph.is_closed(&nodes) {
        return None;
    }
    let transposed = match graph.attributes(index)?.ints("perm")? {
        [0, 2, 1, 3] => 0,
        [0, 2, 3, 1] => 1,
        _ => return None,
    };
    if graph.attributes(reshape)?.int("allowzero", 0)? != 0 {
        return None;
    }
    let biased = graph.biased(addition)?;
    (heads.checked_mul(width) == Some(biased.width)).then(|| Operator {
        name: "BiasHeads",
        inputs: vec![biased.x, biased.bias],
        attributes: vec![("heads", Attribute::Int(heads)), ("transposed", Attribute::Int(transposed))],
        nodes,
    })
}
