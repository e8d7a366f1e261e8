//! What a graph takes, gives and weighs, as its file says it: for whoever wants to know without loading it.

use super::{
    open_file,
    wire::{Field, Fields},
};
use crate::{DType, Dim, Port, ValueType, raw::dtype_of};
use infer_core::Result;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::{Read, Seek},
    path::Path,
};

/// What a model consists of.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Contents {
    /// What the graph takes.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
    /// How often each operator is used, by domain and name, outside of subgraphs.
    pub operators: BTreeMap<String, usize>,
    /// The weights by the type of their elements.
    pub weights: BTreeMap<DType, Weights>,
}

/// All weights of one type, taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Weights {
    /// How many tensors are of it.
    pub tensors: usize,
    /// Parameters in them. What only says how others are stored or shaped has none.
    pub parameters: u64,
    /// The bytes they take.
    pub bytes: u64,
}

/// Reads what the model at `path` consists of. Weights are passed over.
///
/// # Errors
/// As of [`open`](super::open).
pub fn contents(path: impl AsRef<Path>) -> Result<Contents> {
    let path = path.as_ref();
    read(open_file(path)?, path)
}

fn read(model: impl Read + Seek, name: &Path) -> Result<Contents> {
    let (mut fields, end) = Fields::new(model, name)?;
    let mut graph = Graph::default();
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (7, Field::Bytes { end }) => fields.message(end, |fields| graph.read(fields, end))?,
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(graph.finish())
}

impl Contents {
    /// Parameters in all.
    #[must_use]
    pub fn parameters(&self) -> u64 {
        self.weights.values().fold(0, |sum, weights| sum.saturating_add(weights.parameters))
    }

    /// Bytes of all weights.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.weights.values().fold(0, |sum, weights| sum.saturating_add(weights.bytes))
    }

    /// The type that most of the weights' bytes are of.
    #[must_use]
    pub fn main_dtype(&self) -> Option<DType> {
        self.weights.iter().max_by_key(|(_, weights)| weights.bytes).map(|(&dtype, _)| dtype)
    }
}

/// A graph as far as it is read.
#[derive(Default)]
struct Graph {
    contents: Contents,
    tensors: Vec<Tensor>,
    /// Weights of few bits that lie in bytes, by name; and those that say how they are scaled, which are no parameters.
    packed: HashMap<String, Option<Packed>>,
}

#[derive(Default)]
struct Tensor {
    name: String,
    dims: Vec<u64>,
    dtype: u64,
}

/// What lies in a tensor of bytes.
#[derive(Clone, Copy)]
struct Packed {
    dtype: DType,
    parameters: u64,
}

/// A node, as far as it is of use.
#[derive(Default)]
struct Node {
    inputs: Vec<String>,
    operator: String,
    domain: String,
    integers: HashMap<String, u64>,
}

impl Graph {
    fn read<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Bytes { end }) => {
                    let mut node = Node::default();
                    fields.message(end, |fields| node.read(fields, end))?;
                    self.note(node);
                }
                (5, Field::Bytes { end }) => {
                    let mut tensor = Tensor::default();
                    fields.message(end, |fields| tensor.read(fields, end))?;
                    self.tensors.push(tensor);
                }
                (11 | 12, Field::Bytes { end }) => {
                    let mut port = Port { name: String::new(), kind: ValueType::Opaque, has_default: false };
                    fields.message(end, |fields| value(fields, end, &mut port))?;
                    let ports = if number == 11 { &mut self.contents.inputs } else { &mut self.contents.outputs };
                    ports.push(port);
                }
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }

    fn note(&mut self, node: Node) {
        let Node { inputs, operator, domain, integers } = node;
        if operator == "MatMulNBits" {
            let integer = |name: &str| integers.get(name).copied().unwrap_or(0);
            let dtype = match integers.get("bits") {
                Some(2) => DType::U2,
                Some(8) => DType::U8,
                _ => DType::U4,
            };
            let packed = Packed { dtype, parameters: integer("K").saturating_mul(integer("N")) };
            let mut weights = inputs.into_iter().skip(1);
            self.packed.extend(weights.next().map(|name| (name, Some(packed))));
            self.packed.extend(weights.map(|name| (name, None)));
        }
        let dot = if domain.is_empty() { "" } else { "." };
        *self.contents.operators.entry(format!("{domain}{dot}{operator}")).or_default() += 1;
    }

    fn finish(mut self) -> Contents {
        for tensor in &self.tensors {
            let Some(dtype) = i32::try_from(tensor.dtype).ok().and_then(dtype_of) else { continue };
            let elements = tensor.dims.iter().fold(1_u64, |all, &dim| all.saturating_mul(dim));
            let bytes = dtype.bits().map_or(0, |bits| elements.saturating_mul(bits as u64).div_ceil(8));
            // Whole numbers of 32 and 64 bits are shapes and places.
            let is_parameter =
                !matches!(dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64 | DType::Bool | DType::String);
            let plain = Packed { dtype, parameters: if is_parameter { elements } else { 0 } };
            let scale = Packed { dtype, parameters: 0 };
            let found = self.packed.get(&tensor.name).map_or(plain, |packed| packed.unwrap_or(scale));
            let sum = self.contents.weights.entry(found.dtype).or_default();
            sum.tensors += 1;
            sum.parameters = sum.parameters.saturating_add(found.parameters);
            sum.bytes = sum.bytes.saturating_add(bytes);
        }
        // Older files list their weights among the inputs.
        let names: HashSet<&str> = self.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        self.contents.inputs.retain(|port| !names.contains(port.name()));
        self.contents
    }
}

impl Node {
    fn read<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Bytes { end }) => self.inputs.push(fields.text(end)?),
                (4, Field::Bytes { end }) => self.operator = fields.text(end)?,
                (5, Field::Bytes { end }) => {
                    let (mut name, mut integer) = (String::new(), None);
                    fields.message(end, |fields| attribute(fields, end, &mut name, &mut integer))?;
                    self.integers.extend(integer.map(|integer| (name, integer)));
                }
                (7, Field::Bytes { end }) => self.domain = fields.text(end)?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }
}

fn attribute<R: Read + Seek>(
    fields: &mut Fields<'_, R>,
    end: u64,
    name: &mut String,
    integer: &mut Option<u64>,
) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Bytes { end }) => *name = fields.text(end)?,
            (3, Field::Varint(number)) => *integer = Some(number),
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}

impl Tensor {
    fn read<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Varint(dim)) => self.dims.push(dim),
                (1, Field::Bytes { end }) => fields.numbers(end, |dim| self.dims.push(dim))?,
                (2, Field::Varint(dtype)) => self.dtype = dtype,
                (8, Field::Bytes { end }) => self.name = fields.text(end)?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }
}

/// An input or output. What is no tensor is left [`Opaque`](ValueType::Opaque): the runtime knows it better.
fn value<R: Read + Seek>(fields: &mut Fields<'_, R>, end: u64, port: &mut Port) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Bytes { end }) => port.name = fields.text(end)?,
            (2, Field::Bytes { end }) => fields.message(end, |fields| kind(fields, end, &mut port.kind))?,
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}

fn kind<R: Read + Seek>(fields: &mut Fields<'_, R>, end: u64, kind: &mut ValueType) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Bytes { end }) => {
                let (mut dtype, mut dims) = (0, None);
                fields.message(end, |fields| tensor_type(fields, end, &mut dtype, &mut dims))?;
                if let Some(dtype) = i32::try_from(dtype).ok().and_then(dtype_of) {
                    *kind = ValueType::Tensor { dtype, dims };
                }
            }
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}

fn tensor_type<R: Read + Seek>(
    fields: &mut Fields<'_, R>,
    end: u64,
    dtype: &mut u64,
    dims: &mut Option<Vec<Dim>>,
) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Varint(number)) => *dtype = number,
            (2, Field::Bytes { end }) => {
                let dims = dims.get_or_insert_default();
                fields.message(end, |fields| shape(fields, end, dims))?;
            }
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}

fn shape<R: Read + Seek>(fields: &mut Fields<'_, R>, end: u64, dims: &mut Vec<Dim>) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Bytes { end }) => {
                let mut dim = Dim::Dynamic(None);
                fields.message(end, |fields| dimension(fields, end, &mut dim))?;
                dims.push(dim);
            }
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}

fn dimension<R: Read + Seek>(fields: &mut Fields<'_, R>, end: u64, dim: &mut Dim) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            // A negative number says as little as none.
            (1, Field::Varint(number)) if i64::try_from(number).is_ok() => {
                *dim = usize::try_from(number).map_or(Dim::Dynamic(None), Dim::Fixed);
            }
            (2, Field::Bytes { end }) => *dim = Dim::Dynamic(Some(fields.text(end)?).filter(|name| !name.is_empty())),
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}
