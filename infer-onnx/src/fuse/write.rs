//! The bytes of a model that is rewritten.

use super::{
    Attribute, DOMAIN, Operator, VERSION,
    graph::Graph,
    plan::{Place, Plan},
};
use crate::header::{Content, LEAST, Part, Parts};
use infer_core::Result;
use std::{collections::HashSet, path::Path};

/// Writes the model anew. Large weights that lie in it are named as lying in `file`, which it is.
pub(super) fn model(model: &[u8], graph: &Graph<'_>, plan: &Plan, file: &str) -> Result<Vec<u8>> {
    let mut new = Message::default();
    for part in Parts::new(model, Path::new(file))? {
        match part? {
            Part { number: 7, content: Content::Bytes(old), start, .. } => {
                let given = plan.outputs(graph).map(|id| graph.value(id).name).collect();
                let writer = Writer { graph, plan, file, given, start };
                new.message(7, &writer.graph(old)?);
            }
            part => new.0.extend(part.whole),
        }
    }
    let mut opset = Message::default();
    opset.bytes(1, DOMAIN.as_bytes());
    opset.integer(2, VERSION.into());
    new.message(8, &opset);
    Ok(new.0)
}

struct Writer<'w, 'm> {
    graph: &'w Graph<'m>,
    plan: &'w Plan,
    file: &'w str,
    /// The names of what our own operators give.
    given: HashSet<&'m [u8]>,
    /// Where the graph begins in the file.
    start: usize,
}

impl Writer<'_, '_> {
    fn graph(&self, old: &[u8]) -> Result<Message> {
        // The runtime puts what it reads where numbers lie well; what it maps lies as in the file, which is not for our own operators.
        let read = self.plan.read();
        let (mut new, mut nodes) = (Message::default(), 0);
        let mut weights = self.graph.initializers.iter();
        for part in Parts::new(old, Path::new(self.file))? {
            let part = part?;
            match (part.number, part.content) {
                (1, Content::Bytes(_)) => {
                    match self.plan.place(nodes) {
                        Place::Itself => new.0.extend(part.whole),
                        Place::Operator(operator) => new.message(1, &self.node(operator)),
                        Place::Nothing => {}
                    }
                    nodes += 1;
                }
                (5, Content::Bytes(tensor)) => match weights.next() {
                    Some(&weight) if !self.plan.is_needed(weight) => {}
                    Some(weight) if !read.contains(&weight.0) => {
                        match self.external(tensor, self.start + part.start)? {
                            Some(tensor) => new.message(5, &tensor),
                            None => new.0.extend(part.whole),
                        }
                    }
                    _ => new.0.extend(part.whole),
                },
                // Known shapes have the runtime plan memory, which it does worse than without (`raw/operators.rs`).
                (13, Content::Bytes(value)) if self.is_ours(value)? => {}
                _ => new.0.extend(part.whole),
            }
        }
        Ok(new)
    }

    /// Whether what is said here is of a value that an operator of our own gives.
    fn is_ours(&self, value: &[u8]) -> Result<bool> {
        let mut name = None;
        for part in Parts::new(value, Path::new(self.file))? {
            if let Part { number: 1, content: Content::Bytes(bytes), .. } = part? {
                name = Some(bytes);
            }
        }
        Ok(name.is_some_and(|name| self.given.contains(name)))
    }

    fn node(&self, operator: &Operator) -> Message {
        let mut node = Message::default();
        for &input in &operator.inputs {
            node.bytes(1, self.graph.value(input).name);
        }
        // A pattern's last step has what the pattern gives first among its outputs.
        let last = &self.graph.nodes[operator.nodes[0]];
        for &output in self.graph.outputs(last).iter().take(1) {
            node.bytes(2, self.graph.value(output).name);
        }
        node.bytes(4, operator.name.as_bytes());
        for (name, value) in &operator.attributes {
            let mut attribute = Message::default();
            attribute.bytes(1, name.as_bytes());
            match *value {
                Attribute::Float(number) => {
                    attribute.float(2, number);
                    attribute.integer(20, 1);
                }
                Attribute::Int(number) => {
                    attribute.integer(3, number.cast_unsigned());
                    attribute.integer(20, 2);
                }
            }
            node.message(5, &attribute);
        }
        node.bytes(7, DOMAIN.as_bytes());
        node
    }

    /// The same tensor, whose bytes, if they are many, stay in the file. `start` is where the tensor begins there.
    fn external(&self, tensor: &[u8], start: usize) -> Result<Option<Message>> {
        let (mut new, mut raw) = (Message::default(), None);
        for part in Parts::new(tensor, Path::new(self.file))? {
            let part = part?;
            match (part.number, part.content) {
                (9, Content::Bytes(bytes)) if raw.is_none() && bytes.len() as u64 >= LEAST => {
                    raw = Some((start + part.start, bytes.len()));
                }
                // Of whole numbers the runtime wants to know when it tells shapes, and it does not look into files then.
                (2, Content::Varint(6 | 7)) => return Ok(None),
                // Where the elements are, which is said anew.
                (14, Content::Varint(0)) => {}
                // Dimensions, type, name and what is said of it.
                (1 | 2 | 8 | 12 | 16, _) => new.0.extend(part.whole),
                _ => return Ok(None),
            }
        }
        let Some((offset, len)) = raw else { return Ok(None) };
        for (key, value) in [("location", self.file), ("offset", &offset.to_string()), ("length", &len.to_string())] {
            let mut entry = Message::default();
            entry.bytes(1, key.as_bytes());
            entry.bytes(2, value.as_bytes());
            new.message(13, &entry);
        }
        new.integer(14, 1);
        Ok(Some(new))
    }
}

/// A message of protocol buffers, field after field.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn integer(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn float(&mut self, field: u32, value: f32) {
        self.varint(u64::from(field) << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn message(&mut self, field: u32, value: &Self) {
        self.bytes(field, &value.0);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}
