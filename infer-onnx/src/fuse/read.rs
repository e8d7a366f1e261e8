//! From a model's bytes to its graph.

use super::{
    DOMAIN,
    attributes::Attributes,
    constant::Constant,
    graph::{ABSENT, Domain, Graph, Node, Value, ValueId},
};
use crate::header::{Content, Part, Parts};
use infer_core::{Error, Result};
use std::{
    collections::{HashMap, hash_map::Entry},
    path::Path,
};

/// Before, an addition stretched its operands in another way.
const LEAST_OPSET: i64 = 7;

/// Reads the graph of a model; `None` for one that is to be left as it is.
pub(super) fn graph<'m>(model: &'m [u8], name: &Path) -> Result<Option<Graph<'m>>> {
    match Walk::new(name).and_then(|walk| walk.model(model)) {
        Ok(graph) => Ok(Some(graph)),
        Err(Stop::LeaveAlone) => Ok(None),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Why reading ends early.
enum Stop {
    LeaveAlone,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct Walk<'m, 'n> {
    name: &'n Path,
    graph: Graph<'m>,
    names: HashMap<&'m [u8], ValueId>,
    opset: Option<i64>,
    has_graph: bool,
    /// Of the graph.
    inputs: Vec<ValueId>,
}

impl<'m, 'n> Walk<'m, 'n> {
    fn new(name: &'n Path) -> Result<Self, Stop> {
        let graph = Graph {
            opset: 0,
            nodes: Vec::new(),
            values: Vec::new(),
            edges: Vec::new(),
            constants: Vec::new(),
            initializers: Vec::new(),
        };
        let mut walk = Self { name, graph, names: HashMap::new(), opset: None, has_graph: false, inputs: Vec::new() };
        let absent = walk.value(b"");
        debug_assert!(absent == ABSENT, "it is the first");
        Ok(walk)
    }

    fn model(mut self, model: &'m [u8]) -> Result<Graph<'m>, Stop> {
        // The runtime takes none that is as long; what is shorter has fewer values and edges than 32 bits count.
        if u32::try_from(model.len()).is_err() {
            return Err(Stop::LeaveAlone);
        }
        for part in Parts::new(model, self.name)? {
            let part = part?;
            match (part.number, part.content) {
                (7, Content::Bytes(graph)) if !self.has_graph => {
                    self.has_graph = true;
                    self.graph(graph)?;
                }
                (8, Content::Bytes(opset)) => self.opset(opset)?,
                // A second graph, training, functions.
                (7 | 20 | 25, Content::Bytes(_)) => return Err(Stop::LeaveAlone),
                _ => {}
            }
        }
        self.finish()
    }

    fn opset(&mut self, message: &'m [u8]) -> Result<(), Stop> {
        let (mut domain, mut version) = (&[][..], 0);
        for part in Parts::new(message, self.name)? {
            let part = part?;
            match (part.number, part.content) {
                (1, Content::Bytes(text)) => domain = text,
                (2, Content::Varint(number)) => version = number.cast_signed(),
                _ => {}
            }
        }
        match domain_of(domain)? {
            Domain::Onnx if self.opset.replace(version).is_some() => Err(Stop::LeaveAlone),
            _ => Ok(()),
        }
    }

    fn graph(&mut self, message: &'m [u8]) -> Result<(), Stop> {
        for part in Parts::new(message, self.name)? {
            let part = part?;
            match (part.number, part.content) {
                (1, Content::Bytes(message)) => self.node(message)?,
                (5, Content::Bytes(message)) => self.initializer(message)?,
                (11, Content::Bytes(message)) => {
                    let input = self.port(message)?;
                    self.inputs.push(input);
                }
                (12, Content::Bytes(message)) => {
                    let output = self.port(message)?;
                    self.of(output).uses += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn node(&mut self, message: &'m [u8]) -> Result<(), Stop> {
        let (mut operator, mut domain) = (&[][..], &[][..]);
        let (mut outputs, start) = (Vec::new(), self.graph.edges.len());
        for part in Parts::new(message, self.name)? {
            let part = part?;
            match (part.number, part.content) {
                (1, Content::Bytes(name)) => {
                    let input = self.value(name);
                    self.of(input).uses += 1;
                    self.graph.edges.push(input);
                }
                (2, Content::Bytes(name)) => outputs.push(self.value(name)),
                (4, Content::Bytes(text)) => operator = text,
                (5, Content::Bytes(message)) => self.has_no_graph(message)?,
                (7, Content::Bytes(text)) => domain = text,
                _ => {}
            }
        }
        let domain = domain_of(domain)?;
        if operator.is_empty() {
            return Err(Stop::LeaveAlone);
        }
        let inputs_end = self.graph.edges.len();
        self.graph.edges.extend(&outputs);
        let edges = [start, inputs_end, self.graph.edges.len()].map(count);
        let node = Node { domain, operator, message, edges };
        for &output in outputs.iter().filter(|&&output| output != ABSENT) {
            self.define(output)?;
            self.of(output).producer = Some(count(self.graph.nodes.len()));
        }
        if let &[output] = &outputs[..]
            && node.is("Constant")
            && output != ABSENT
        {
            self.constant(message, output)?;
        }
        self.graph.nodes.push(node);
        Ok(())
    }

    /// Graphs in attributes use names of those around them.
    fn has_no_graph(&self, attribute: &'m [u8]) -> Result<(), Stop> {
        for part in Parts::new(attribute, self.name)? {
            if matches!(part?.number, 6 | 11) {
                return Err(Stop::LeaveAlone);
            }
        }
        Ok(())
    }

    /// What a node gives that always gives the same.
    fn constant(&mut self, node: &'m [u8], output: ValueId) -> Result<(), Stop> {
        let attributes = Attributes::read(node, self.name);
        if let Some(tensor) = attributes.and_then(|attributes| attributes.tensor("value")) {
            let (_, constant) = Constant::read(tensor, self.name)?;
            self.know(output, constant);
        }
        Ok(())
    }

    fn initializer(&mut self, message: &'m [u8]) -> Result<(), Stop> {
        let (name, constant) = Constant::read(message, self.name)?;
        if name.is_empty() {
            return Err(Stop::LeaveAlone);
        }
        let id = self.value(name);
        self.define(id)?;
        self.graph.initializers.push(id);
        self.know(id, constant);
        Ok(())
    }

    /// An input or output of the graph.
    fn port(&mut self, message: &'m [u8]) -> Result<ValueId, Stop> {
        let mut name = &[][..];
        for part in Parts::new(message, self.name)? {
            if let Part { number: 1, content: Content::Bytes(text), .. } = part? {
                name = text;
            }
        }
        Ok(self.value(name))
    }

    /// The value of this name, which is new if it was not seen.
    fn value(&mut self, name: &'m [u8]) -> ValueId {
        match self.names.entry(name) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let id = *new.insert(ValueId(count(self.graph.values.len())));
                self.graph.values.push(Value { name, producer: None, constant: None, uses: 0 });
                id
            }
        }
    }

    fn of(&mut self, id: ValueId) -> &mut Value<'m> {
        &mut self.graph.values[id.0 as usize]
    }

    /// A name that says two things is for the runtime to refuse.
    fn define(&mut self, id: ValueId) -> Result<(), Stop> {
        let value = self.of(id);
        if value.producer.is_some() || value.constant.is_some() { Err(Stop::LeaveAlone) } else { Ok(()) }
    }

    fn know(&mut self, id: ValueId, constant: Constant) {
        let index = count(self.graph.constants.len());
        self.graph.constants.push(constant);
        self.of(id).constant = Some(index);
    }

    fn finish(mut self) -> Result<Graph<'m>, Stop> {
        self.graph.opset = self.opset.filter(|&opset| opset >= LEAST_OPSET).ok_or(Stop::LeaveAlone)?;
        for input in std::mem::take(&mut self.inputs) {
            let value = self.of(input);
            if value.producer.is_some() {
                return Err(Stop::LeaveAlone);
            }
            // A weight that can be fed is no constant.
            value.constant = None;
        }
        Ok(self.graph)
    }
}

fn domain_of(domain: &[u8]) -> Result<Domain, Stop> {
    match domain {
        b"" | b"ai.onnx" => Ok(Domain::Onnx),
        b"com.microsoft" => Ok(Domain::Microsoft),
        _ if domain == DOMAIN.as_bytes() => Err(Stop::LeaveAlone),
        _ => Ok(Domain::Other),
    }
}

/// A count of things of which each takes a byte of the model at least.
fn count(of: usize) -> u32 {
    u32::try_from(of).unwrap_or(u32::MAX)
}
