//! A graph by its nodes and values, and what patterns ask of it.

use super::{attributes::Attributes, constant::Constant};
use std::path::Path;

/// A value, by its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ValueId(pub(super) u32);

/// What stands for an input or output that is left out.
pub(super) const ABSENT: ValueId = ValueId(0);

/// The main graph of a model.
pub(super) struct Graph<'m> {
    /// The version of ONNX's own operators.
    pub(super) opset: i64,
    pub(super) nodes: Vec<Node<'m>>,
    pub(super) values: Vec<Value<'m>>,
    /// The inputs and outputs of all nodes, one node after the other.
    pub(super) edges: Vec<ValueId>,
    /// Those of `values`.
    pub(super) constants: Vec<Constant>,
    /// In the model's order.
    pub(super) initializers: Vec<ValueId>,
}

#[derive(Clone, Copy)]
pub(super) struct Node<'m> {
    pub(super) domain: Domain,
    pub(super) operator: &'m [u8],
    pub(super) message: &'m [u8],
    /// Where its edges begin, where its outputs begin, and where they end.
    pub(super) edges: [u32; 3],
}

/// Whose operator a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Onnx,
    Microsoft,
    Other,
}

pub(super) struct Value<'m> {
    pub(super) name: &'m [u8],
    /// The node that gives it.
    pub(super) producer: Option<u32>,
    /// What it is where it is always the same, among the graph's constants.
    pub(super) constant: Option<u32>,
    /// How many inputs of nodes it is; to be an output of the graph counts as one.
    pub(super) uses: u32,
}

impl<'m> Graph<'m> {
    pub(super) fn inputs(&self, node: &Node<'_>) -> &[ValueId] {
        &self.edges[node.edges[0] as usize..node.edges[1] as usize]
    }

    pub(super) fn outputs(&self, node: &Node<'_>) -> &[ValueId] {
        &self.edges[node.edges[1] as usize..node.edges[2] as usize]
    }

    pub(super) fn value(&self, id: ValueId) -> &Value<'m> {
        &self.values[id.0 as usize]
    }

    /// What is known of a value that is always the same.
    pub(super) fn constant(&self, id: ValueId) -> Option<&Constant> {
        self.value(id).constant.map(|constant| &self.constants[constant as usize])
    }

    /// The one number that a value is.
    pub(super) fn number(&self, id: ValueId) -> Option<f32> {
        if let Some(&Constant::Number(number)) = self.constant(id) { Some(number) } else { None }
    }

    /// Whether a value is this number, as far as 32 bits tell.
    pub(super) fn is_number(&self, id: ValueId, number: f64) -> bool {
        self.number(id).is_some_and(|is| is_close(is.into(), number))
    }

    /// The whole numbers that a value is, some of one dimension.
    pub(super) fn integers(&self, id: ValueId) -> Option<&[i64]> {
        if let Some(Constant::Integers(integers)) = self.constant(id) { Some(integers) } else { None }
    }

    /// The length of a weight of one dimension.
    ///
    /// One of a single element is none: where it is added to something of another width, both stretch.
    pub(super) fn width(&self, id: ValueId) -> Option<i64> {
        if let Some(&Constant::Vector(width)) = self.constant(id) {
            Some(width).filter(|&width| width > 1)
        } else {
            None
        }
    }

    /// The index of the node that gives a value.
    pub(super) fn producer(&self, id: ValueId) -> Option<usize> {
        self.value(id).producer.map(|index| index as usize)
    }

    /// What this node takes and gives, if it is this operator of ONNX with so many inputs and one output.
    pub(super) fn operands<const N: usize>(&self, index: usize, operator: &str) -> Option<([ValueId; N], ValueId)> {
        let node = &self.nodes[index];
        if !node.is(operator) {
            return None;
        }
        let &[output] = self.outputs(node) else { return None };
        let inputs = self.inputs(node).try_into().ok()?;
        (output != ABSENT).then_some((inputs, output))
    }

    /// The node that gives a value, and what it takes, if it is this operator of ONNX with so many inputs and one output.
    pub(super) fn made_by<const N: usize>(&self, id: ValueId, operator: &str) -> Option<(usize, [ValueId; N])> {
        let index = self.producer(id)?;
        self.operands(index, operator).map(|(inputs, _)| (index, inputs))
    }

    pub(super) fn attributes(&self, index: usize) -> Option<Attributes<'m>> {
        Attributes::read(self.nodes[index].message, Path::new(""))
    }

    /// Whether all that these nodes give but the first one is taken by them, and by no other. For few nodes of few inputs and
    /// outputs, as a pattern has.
    pub(super) fn is_closed(&self, nodes: &[usize]) -> bool {
        let taken = |id: ValueId| {
            let all = nodes.iter().flat_map(|&index| self.inputs(&self.nodes[index]));
            all.filter(|&&input| input == id).count()
        };
        nodes.iter().skip(1).all(|&index| {
            let outputs = self.outputs(&self.nodes[index]);
            outputs.iter().all(|&output| self.value(output).uses as usize == taken(output))
        })
    }

    /// `x` and `bias` of an addition of a bias: `x` is a product with a matrix of as many columns as the bias has elements, so that the sum is
    /// shaped as `x` is, and all are 32-bit floats. Reads attributes: only for a node that is looked at once.
    pub(super) fn biased(&self, index: usize) -> Option<Biased> {
        let (inputs, _) = self.operands::<2>(index, "Add")?;
        both_ways(inputs).find_map(|[x, bias]| self.bias_of(x, bias))
    }

    /// The same of two values that are known to be added.
    pub(super) fn bias_of(&self, x: ValueId, bias: ValueId) -> Option<Biased> {
        let width = self.width(bias)?;
        (self.value(x).uses == 1 && self.columns(x) == Some(width)).then_some(Biased { x, bias, width })
    }

    /// The columns of a matrix of weights that a value is a product with.
    fn columns(&self, id: ValueId) -> Option<i64> {
        let index = self.producer(id)?;
        let node = &self.nodes[index];
        let matrix = |id: ValueId| {
            if let Some(&Constant::Matrix(dims)) = self.constant(id) { Some(dims) } else { None }
        };
        let &[_, weights, ..] = self.inputs(node) else { return None };
        let [rows, columns] = matrix(weights)?;
        if node.is("MatMul") {
            return Some(columns);
        }
        if !node.is("Gemm") {
            return None;
        }
        match self.attributes(index)?.int("transB", 0)? {
            0 => Some(columns),
            _ => Some(rows),
        }
    }

    /// A value times a number: what it is, and the number.
    pub(super) fn scaled(&self, index: usize) -> Option<(ValueId, f64)> {
        if let Some((inputs, _)) = self.operands::<2>(index, "Mul") {
            return both_ways(inputs).find_map(|[value, by]| Some((value, self.number(by)?.into())));
        }
        let ([value, by], _) = self.operands(index, "Div")?;
        self.number(by).map(|by| (value, f64::from(by).recip()))
    }
}

impl Node<'_> {
    /// Whether it is this operator of ONNX.
    pub(super) fn is(&self, operator: &str) -> bool {
        self.domain == Domain::Onnx && self.operator == operator.as_bytes()
    }

    /// Whether it is this operator of ONNX Runtime's own.
    pub(super) fn is_microsoft(&self, operator: &str) -> bool {
        self.domain == Domain::Microsoft && self.operator == operator.as_bytes()
    }
}

/// The parts of `x + bias`.
pub(super) struct Biased {
    pub(super) x: ValueId,
    pub(super) bias: ValueId,
    pub(super) width: i64,
}

/// Two values, in either order.
pub(super) fn both_ways([one, other]: [ValueId; 2]) -> impl Iterator<Item = [ValueId; 2]> {
    [[one, other], [other, one]].into_iter()
}

/// Whether two numbers are one, up to how 32 bits round it.
pub(super) fn is_close(is: f64, wanted: f64) -> bool {
    (is - wanted).abs() <= 1e-6 * wanted.abs()
}
