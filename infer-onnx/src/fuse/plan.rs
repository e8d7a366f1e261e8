//! What becomes of a graph's nodes and weights.

use super::{
    Operator,
    float::floats,
    graph::{Graph, ValueId},
    operator_at,
};
use std::collections::HashSet;

pub(super) struct Plan {
    /// Node by node.
    nodes: Vec<Fate>,
    operators: Vec<Operator>,
    /// Constants that nobody needs any more; the runtime warns of weights that nobody needs.
    unneeded: HashSet<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Dropped,
    /// An operator of our own stands there instead.
    Replaced(u32),
}

/// What stands in the place of a node.
pub(super) enum Place<'p> {
    Itself,
    Nothing,
    Operator(&'p Operator),
}

impl Plan {
    pub(super) fn of(graph: &Graph<'_>) -> Self {
        let floats = floats(graph);
        let mut plan =
            Self { nodes: vec![Fate::Kept; graph.nodes.len()], operators: Vec::new(), unneeded: HashSet::new() };
        for index in 0..graph.nodes.len() {
            if let Some(operator) = operator_at(graph, &floats, index) {
                plan.add(graph, operator);
            }
        }
        if !plan.operators.is_empty() {
            plan.drop_unneeded(graph);
        }
        plan
    }

    /// Takes an operator, if no other one has taken a node that it stands for, and it needs nothing that such a node gives.
    fn add(&mut self, graph: &Graph<'_>, operator: Operator) {
        let is_taken = |&node: &usize| self.nodes[node] != Fate::Kept;
        let is_inside = |&input: &ValueId| graph.producer(input).is_some_and(|node| operator.nodes.contains(&node));
        if operator.nodes.iter().any(is_taken) || operator.inputs.iter().any(is_inside) {
            return;
        }
        let Ok(at) = u32::try_from(self.operators.len()) else { return };
        for &node in &operator.nodes {
            self.nodes[node] = Fate::Dropped;
        }
        self.nodes[operator.nodes[0]] = Fate::Replaced(at);
        self.operators.push(operator);
    }

    fn drop_unneeded(&mut self, graph: &Graph<'_>) {
        let mut uses: Vec<u32> = graph.values.iter().map(|value| value.uses).collect();
        for (node, _) in graph.nodes.iter().zip(&self.nodes).filter(|(_, fate)| **fate != Fate::Kept) {
            graph.inputs(node).iter().for_each(|input| uses[input.0 as usize] -= 1);
        }
        for input in self.operators.iter().flat_map(|operator| &operator.inputs) {
            uses[input.0 as usize] += 1;
        }
        for (id, value) in graph.values.iter().enumerate() {
            // What nobody needed before is not ours to judge.
            if value.constant.is_none() || value.uses == 0 || uses[id] > 0 {
                continue;
            }
            if let Some(node) = value.producer {
                self.nodes[node as usize] = Fate::Dropped;
            }
            self.unneeded.extend(u32::try_from(id));
        }
    }

    /// How many operators of our own there are.
    pub(super) fn operators(&self) -> usize {
        self.operators.len()
    }

    pub(super) fn place(&self, node: usize) -> Place<'_> {
        match self.nodes[node] {
            Fate::Kept => Place::Itself,
            Fate::Dropped => Place::Nothing,
            Fate::Replaced(operator) => Place::Operator(&self.operators[operator as usize]),
        }
    }

    pub(super) fn is_needed(&self, weight: ValueId) -> bool {
        !self.unneeded.contains(&weight.0)
    }

    /// The values that operators of our own give.
    pub(super) fn outputs(&self, graph: &Graph<'_>) -> impl Iterator<Item = ValueId> {
        self.operators.iter().filter_map(|operator| graph.outputs(&graph.nodes[operator.nodes[0]]).first().copied())
    }

    /// The values that operators of our own read.
    pub(super) fn read(&self) -> HashSet<u32> {
        self.operators.iter().flat_map(|operator| &operator.inputs).map(|id| id.0).collect()
    }
}
