//! A layer normalisation of a sum with a bias and a residual.

use super::{
    Attribute, Operator,
    graph::{ABSENT, Graph, ValueId, both_ways},
};

/// A layer normalisation over the last axis, as far as it is known without attributes.
struct Norm {
    value: ValueId,
    scale: ValueId,
    shift: ValueId,
    epsilon: Option<f32>,
    /// The last step first.
    nodes: Vec<usize>,
    means: Vec<Mean>,
}

/// A mean that must be over the last axis.
struct Mean {
    node: usize,
    axes: Option<ValueId>,
}

/// `AddNormalization` in the place of a layer normalisation that ends with this node.
pub(super) fn find(graph: &Graph<'_>, index: usize) -> Option<Operator> {
    let norm = whole(graph, index).or_else(|| spelt_out(graph, index))?;
    let width = graph.width(norm.scale)?;
    if graph.width(norm.shift)? != width {
        return None;
    }
    let (outer, terms) = graph.made_by::<2>(norm.value, "Add")?;
    let found = both_ways(terms).find_map(|[sum, residual]| {
        let (inner, _) = graph.made_by::<2>(sum, "Add")?;
        let nodes = [&norm.nodes[..], &[outer, inner]].concat();
        // Before attributes are read, which is for each node once.
        let biased = if graph.is_closed(&nodes) { graph.biased(inner)? } else { return None };
        (biased.width == width).then_some((nodes, [biased.x, biased.bias, residual]))
    });
    let (nodes, [x, bias, residual]) = found?;
    let epsilon = epsilon(graph, index, &norm)?;
    Some(Operator {
        name: "AddNormalization",
        inputs: vec![x, bias, residual, norm.scale, norm.shift],
        attributes: vec![("epsilon", Attribute::Float(epsilon))],
        nodes,
    })
}

/// The operator for it, of whose outputs only the first is used.
fn whole(graph: &Graph<'_>, index: usize) -> Option<Norm> {
    let node = &graph.nodes[index];
    let (&[value, scale, shift], &[output, ref more @ ..]) = (graph.inputs(node), graph.outputs(node)) else {
        return None;
    };
    let is_alone = more.iter().all(|&id| id == ABSENT || graph.value(id).uses == 0);
    let is_norm = node.is("LayerNormalization") && output != ABSENT && is_alone;
    is_norm.then(|| Norm { value, scale, shift, epsilon: None, nodes: vec![index], means: Vec::new() })
}

/// The steps of it: with `d = u - mean(u)`, `d / √(mean(d²) + epsilon) * scale + shift`. Exporters write `d` once or twice.
fn spelt_out(graph: &Graph<'_>, index: usize) -> Option<Norm> {
    let (sum, _) = graph.operands::<2>(index, "Add")?;
    let (shift, scaling, [normal, scale]) = both_ways(sum).find_map(|[scaled, shift]| {
        graph.width(shift)?;
        let (scaling, product) = graph.made_by::<2>(scaled, "Mul")?;
        let of = both_ways(product).find(|&[_, scale]| graph.width(scale).is_some())?;
        Some((shift, scaling, of))
    })?;
    let (division, [difference, root]) = graph.made_by(normal, "Div")?;
    let (root, [variance]) = graph.made_by(root, "Sqrt")?;
    let (addition, terms) = graph.made_by::<2>(variance, "Add")?;
    let (variance, epsilon) =
        both_ways(terms).find_map(|[variance, epsilon]| Some((variance, graph.number(epsilon)?)))?;
    let (of_squares, squares) = mean(graph, variance)?;
    let (squaring, squared) = square(graph, squares)?;
    let (subtraction, [value, middle]) = graph.made_by(difference, "Sub")?;
    let (again, same) = graph.made_by::<2>(squared, "Sub")?;
    let (of_values, averaged) = mean(graph, middle)?;
    if same != [value, middle] || averaged != value {
        return None;
    }
    let mut nodes = vec![index, scaling, division, root, addition, of_squares.node, squaring, subtraction];
    nodes.extend((again != subtraction).then_some(again));
    nodes.push(of_values.node);
    Some(Norm { value, scale, shift, epsilon: Some(epsilon), nodes, means: vec![of_squares, of_values] })
}

/// A mean, and what it is of.
fn mean(graph: &Graph<'_>, id: ValueId) -> Option<(Mean, ValueId)> {
    if let Some((node, [of])) = graph.made_by(id, "ReduceMean") {
        return Some((Mean { node, axes: None }, of));
    }
    let (node, [of, axes]) = graph.made_by(id, "ReduceMean")?;
    Some((Mean { node, axes: Some(axes) }, of))
}

/// What a value is the square of.
fn square(graph: &Graph<'_>, id: ValueId) -> Option<(usize, ValueId)> {
    if let Some((node, [of, power])) = graph.made_by(id, "Pow") {
        return graph.is_number(power, 2.0).then_some((node, of));
    }
    let (node, [one, other]) = graph.made_by(id, "Mul")?;
    (one == other).then_some((node, one))
}

/// What is added to the variance, if the attributes say that it is a normalisation over the last axis.
fn epsilon(graph: &Graph<'_>, index: usize, norm: &Norm) -> Option<f32> {
    if let Some(epsilon) = norm.epsilon {
        return norm.means.iter().all(|mean| mean.is_over_last(graph).is_some()).then_some(epsilon);
    }
    let attributes = graph.attributes(index)?;
    // Statistics are of 32 bits, which is what 1 means here.
    let is_it = attributes.int("axis", -1)? == -1 && attributes.int("stash_type", 1)? == 1;
    if is_it { attributes.float("epsilon", 1e-5) } else { None }
}

impl Mean {
    /// Whether it is over the last axis and keeps it: by an attribute, or from version 18 on by an input.
    fn is_over_last(&self, graph: &Graph<'_>) -> Option<()> {
        let attributes = graph.attributes(self.node)?;
        let axes = match self.axes {
            None if graph.opset < 18 => attributes.ints("axes")?,
            Some(axes) if graph.opset >= 18 => graph.integers(axes)?,
            _ => return None,
        };
        (axes == [-1] && attributes.int("keepdims", 1)? == 1).then_some(())
    }
}
