//! An ONNX model, message by message, as far as a header and the names of files go.
//!
//! Field numbers are those of `onnx.proto`. Tensors lie in more places than a graph's weights: in attributes of nodes, in graphs inside
//! these, in functions, and in what a model may have for training. All of them are gone through.

use super::{
    ExternalFile, Header,
    functions::{Functions, Name},
    invalid,
    wire::{Field, Fields},
};
use infer_core::Result;
use std::{
    collections::HashMap,
    io::{Read, Seek},
    path::Path,
};

pub(super) fn model(file: impl Read + Seek, name: &Path) -> Result<Header> {
    let (mut fields, end) = Fields::new(file, name)?;
    let mut walk =
        Walk { name, header: Header::default(), files: HashMap::new(), functions: Functions::default(), graphs: 0 };
    walk.model(&mut fields, end)?;
    if walk.graphs == 0 {
        return Err(invalid(name, "it is no ONNX model: it has no graph"));
    }
    walk.functions.check().map_err(|why| invalid(name, why))?;
    Ok(walk.header)
}

struct Walk<'n> {
    name: &'n Path,
    header: Header,
    /// Where each file is in the header's list.
    files: HashMap<String, usize>,
    functions: Functions,
    /// Graphs of the model itself, of which there is one.
    graphs: usize,
}

impl Walk<'_> {
    fn model<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Varint(version)) => self.header.ir_version = version.cast_signed(),
                (2, Field::Bytes { end }) => self.header.producer = fields.text(end)?,
                (3, Field::Bytes { end }) => self.header.producer_version = fields.text(end)?,
                (4, Field::Bytes { end }) => self.header.domain = fields.text(end)?,
                (5, Field::Varint(version)) => self.header.model_version = version.cast_signed(),
                (6, Field::Bytes { end }) => self.header.description = fields.text(end)?,
                (7, Field::Bytes { end }) => {
                    self.graphs += 1;
                    fields.message(end, |fields| self.graph(fields, end, true))?;
                }
                (8, Field::Bytes { end }) => fields.message(end, |fields| self.opset(fields, end))?,
                (14, Field::Bytes { end }) => {
                    let (mut key, mut value) = (String::new(), String::new());
                    fields.message(end, |fields| entry(fields, end, &mut key, &mut value))?;
                    self.header.metadata.push((key, value));
                }
                // Training: graphs of how weights begin and how they change.
                (20, Field::Bytes { end }) => fields.message(end, |fields| self.training(fields, end))?,
                (25, Field::Bytes { end }) => fields.message(end, |fields| self.function(fields, end))?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }

    fn graph<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64, is_main: bool) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Bytes { end }) => fields.message(end, |fields| self.node(fields, end))?,
                (2, Field::Bytes { end }) if is_main => self.header.graph_name = fields.text(end)?,
                (5, Field::Bytes { end }) => fields.message(end, |fields| self.tensor(fields, end))?,
                (10, Field::Bytes { end }) if is_main => self.header.graph_description = fields.text(end)?,
                (15, Field::Bytes { end }) => fields.message(end, |fields| self.sparse(fields, end))?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }

    fn node<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        let mut called = Name::default();
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (4, Field::Bytes { end }) => called.operator = fields.text(end)?,
                (5, Field::Bytes { end }) => fields.message(end, |fields| self.attribute(fields, end))?,
                (7, Field::Bytes { end }) => called.domain = fields.text(end)?,
                (8, Field::Bytes { end }) => called.overload = fields.text(end)?,
                (_, other) => fields.skip(other)?,
            }
        }
        self.functions.note(called);
        Ok(())
    }

    fn attribute<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (5 | 10, Field::Bytes { end }) => fields.message(end, |fields| self.tensor(fields, end))?,
                (6 | 11, Field::Bytes { end }) => fields.message(end, |fields| self.graph(fields, end, false))?,
                (22 | 23, Field::Bytes { end }) => fields.message(end, |fields| self.sparse(fields, end))?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }

    fn sparse<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1 | 2, Field::Bytes { end }) => fields.message(end, |fields| self.tensor(fields, end))?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }

    fn function<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        let (outer, mut function) = (self.functions.enter(), Name::default());
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Bytes { end }) => function.operator = fields.text(end)?,
                (7, Field::Bytes { end }) => fields.message(end, |fields| self.node(fields, end))?,
                (10, Field::Bytes { end }) => function.domain = fields.text(end)?,
                (11, Field::Bytes { end }) => fields.message(end, |fields| self.attribute(fields, end))?,
                (13, Field::Bytes { end }) => function.overload = fields.text(end)?,
                (_, other) => fields.skip(other)?,
            }
        }
        self.functions.leave(outer, function).map_err(|why| invalid(self.name, why))
    }

    fn training<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1 | 2, Field::Bytes { end }) => fields.message(end, |fields| self.graph(fields, end, false))?,
                (_, other) => fields.skip(other)?,
            }
        }
        Ok(())
    }

    fn opset<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        let (mut domain, mut version) = (String::new(), 0);
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (1, Field::Bytes { end }) => domain = fields.text(end)?,
                (2, Field::Varint(number)) => version = number.cast_signed(),
                (_, other) => fields.skip(other)?,
            }
        }
        self.header.opsets.push((domain, version));
        Ok(())
    }

    /// A tensor, of which only the name and the entries for its file are read, whatever it says of where its data is.
    fn tensor<R: Read + Seek>(&mut self, fields: &mut Fields<'_, R>, end: u64) -> Result<()> {
        let (mut tensor, mut entries) = (String::new(), Vec::new());
        while let Some((number, field)) = fields.next(end)? {
            match (number, field) {
                (8, Field::Bytes { end }) => tensor = fields.text(end)?,
                (13, Field::Bytes { end }) => {
                    let (mut key, mut value) = (String::new(), String::new());
                    fields.message(end, |fields| entry(fields, end, &mut key, &mut value))?;
                    entries.push((key, value));
                }
                (_, other) => fields.skip(other)?,
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        let number = |wanted: &str| {
            let text = entries.iter().rfind(|(key, _)| key == wanted).map_or("0", |(_, value)| value.as_str());
            text.parse::<u64>()
                .map_err(|_| invalid(self.name, format!("the {wanted} of tensor {tensor:?} in its file is {text:?}")))
        };
        let (offset, len) = (number("offset")?, number("length")?);
        // More than one place would be nonsense; the runtime takes one of them, so each is looked at.
        for (_, location) in entries.into_iter().filter(|(key, _)| key == "location") {
            self.note(location, &tensor, offset.saturating_add(len));
        }
        Ok(())
    }

    /// Notes that a tensor lies in a file, up to there.
    fn note(&mut self, location: String, tensor: &str, end: u64) {
        if let Some(&index) = self.files.get(&location) {
            let file = &mut self.header.files[index];
            file.end = file.end.max(end);
            return;
        }
        self.header.files.push(ExternalFile { location: location.clone(), tensor: tensor.to_owned(), end });
        self.files.insert(location, self.header.files.len() - 1);
    }
}

/// A key and its value.
pub(super) fn entry<R: Read + Seek>(
    fields: &mut Fields<'_, R>,
    end: u64,
    key: &mut String,
    value: &mut String,
) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Bytes { end }) => *key = fields.text(end)?,
            (2, Field::Bytes { end }) => *value = fields.text(end)?,
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}
