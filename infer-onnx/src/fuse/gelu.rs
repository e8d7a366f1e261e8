//! A GELU of a sum with a bias.

use super::{
    Operator,
    graph::{ABSENT, Biased, Graph, ValueId, both_ways, is_close},
};
use std::f64::consts::FRAC_1_SQRT_2;

/// `BiasGelu` in the place of a GELU that ends with this node.
pub(super) fn find(graph: &Graph<'_>, index: usize) -> Option<Operator> {
    if let Some(operator) = biased(graph, index) {
        return Some(operator);
    }
    let (value, mut nodes) = whole(graph, index).or_else(|| spelt_out(graph, index))?;
    let (addition, _) = graph.made_by::<2>(value, "Add")?;
    nodes.push(addition);
    // Before attributes are read, which is for each node once.
    if !graph.is_closed(&nodes) || !is_exact(graph, index)? {
        return None;
    }
    graph.biased(addition).map(|parts| operator(&parts, nodes))
}

fn operator(&Biased { x, bias, .. }: &Biased, nodes: Vec<usize>) -> Operator {
    Operator { name: "BiasGelu", inputs: vec![x, bias], attributes: Vec::new(), nodes }
}

/// The runtime's own operator of a GELU and the bias before it.
fn biased(graph: &Graph<'_>, index: usize) -> Option<Operator> {
    let node = &graph.nodes[index];
    let (&[x, bias], &[output]) = (graph.inputs(node), graph.outputs(node)) else { return None };
    if !node.is_microsoft("BiasGelu") || output == ABSENT {
        return None;
    }
    graph.bias_of(x, bias).map(|parts| operator(&parts, vec![index]))
}

/// An operator that is a GELU: what it is of.
fn whole(graph: &Graph<'_>, index: usize) -> Option<(ValueId, Vec<usize>)> {
    let node = &graph.nodes[index];
    let (&[input], &[output]) = (graph.inputs(node), graph.outputs(node)) else { return None };
    let is_gelu = (node.is("Gelu") || node.is_microsoft("Gelu")) && output != ABSENT;
    is_gelu.then(|| (input, vec![index]))
}

/// Whether a GELU is the one by the error function, and not near it. What is spelt out is looked at elsewhere.
fn is_exact(graph: &Graph<'_>, index: usize) -> Option<bool> {
    if !graph.nodes[index].is("Gelu") {
        return Some(true);
    }
    Some(graph.attributes(index)?.text("approximate", "none")? == b"none")
}

/// A GELU in the steps that exporters write: `u`, `erf(u / √2) + 1` and `1/2`, multiplied in any order. What it is of, and its nodes, the last
/// step first.
fn spelt_out(graph: &Graph<'_>, index: usize) -> Option<(ValueId, Vec<usize>)> {
    let product = |id| graph.made_by::<2>(id, "Mul");
    // The half last …
    if let Some(whole) = half(graph, index) {
        let (inner, factors) = product(whole)?;
        return of_factors(graph, factors, [index, inner]);
    }
    // … or in either factor.
    let (factors, _) = graph.operands::<2>(index, "Mul")?;
    both_ways(factors).find_map(|[halved, other]| {
        let inner = graph.producer(halved)?;
        of_factors(graph, [half(graph, inner)?, other], [index, inner])
    })
}

fn half(graph: &Graph<'_>, index: usize) -> Option<ValueId> {
    graph.scaled(index).and_then(|(value, by)| is_close(by, 0.5).then_some(value))
}

/// The rest of it: of two factors, one is `u`, and the other `erf(u / √2) + 1`.
fn of_factors(graph: &Graph<'_>, factors: [ValueId; 2], outer: [usize; 2]) -> Option<(ValueId, Vec<usize>)> {
    both_ways(factors).find_map(|[u, other]| {
        let (plus, sum) = graph.made_by::<2>(other, "Add")?;
        let [erf, _] = both_ways(sum).find(|&[_, one]| graph.is_number(one, 1.0))?;
        let (erf, [scaled]) = graph.made_by(erf, "Erf")?;
        let scale = graph.producer(scaled)?;
        let (value, by) = graph.scaled(scale)?;
        let is_it = value == u && is_close(by, FRAC_1_SQRT_2);
        is_it.then(|| (u, vec![outer[0], outer[1], plus, erf, scale]))
    })
}
