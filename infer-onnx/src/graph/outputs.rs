//! What runs gave.

use super::ports::Ports;
use crate::{
    TensorView, ValueView,
    error::invalid_input,
    raw::{self, Contents},
};
use infer_core::{Error, Result};

/// What the last run gave, by name. Borrowed: the memory is the runtime's, or the caller's where an output is bound to it.
#[derive(Clone, Copy)]
pub struct Outputs<'a> {
    ports: &'a Ports,
    values: Values<'a>,
}

#[derive(Clone, Copy)]
enum Values<'a> {
    Run(&'a raw::Outputs),
    Bound(&'a raw::Binding<'a>),
    Nothing,
}

impl<'a> Outputs<'a> {
    pub(super) fn of_run(ports: &'a Ports, values: &'a raw::Outputs) -> Self {
        Self { ports, values: Values::Run(values) }
    }

    /// Of a binding; none where it has not run.
    pub(super) fn of_binding(ports: &'a Ports, binding: Option<&'a raw::Binding<'a>>) -> Self {
        Self { ports, values: binding.map_or(Values::Nothing, Values::Bound) }
    }

    /// An output, which must be a tensor.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such output, the last run gave none, or it is no tensor.
    pub fn tensor(self, name: &str) -> Result<TensorView<'a>> {
        let value = self.named(name)?;
        if let Contents::Tensor(_) = value.contents() {
            return TensorView::of_runtime(value);
        }
        let is = ValueView::of_runtime(value)?.what();
        Err(invalid_input(format!("the output {name:?} is {is}, not a tensor")))
    }

    /// An output of any kind.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such output, or the last run gave none.
    pub fn get(self, name: &str) -> Result<ValueView<'a>> {
        ValueView::of_runtime(self.named(name)?)
    }

    /// Each output that the last run gave, with its name, in the order of the graph, or in which they were asked for.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Result<ValueView<'a>>)> {
        let indices: Vec<usize> = match self.values {
            Values::Run(values) => values.indices().collect(),
            Values::Bound(_) => (0..self.ports.outputs.len()).collect(),
            Values::Nothing => Vec::new(),
        };
        indices.into_iter().filter_map(move |index| {
            let value = self.value(index)?;
            Some((self.ports.outputs[index].name(), ValueView::of_runtime(value)))
        })
    }

    fn named(self, name: &str) -> Result<&'a raw::Value> {
        self.value(self.ports.output(name)?).ok_or_else(|| not_there(name))
    }

    fn value(self, index: usize) -> Option<&'a raw::Value> {
        match self.values {
            Values::Run(values) => values.get(index),
            Values::Bound(binding) => binding.output(index),
            Values::Nothing => None,
        }
    }
}

impl std::fmt::Debug for Outputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

pub(super) fn not_there(name: &str) -> Error {
    invalid_input(format!(
        "the last run gave no output {name:?}: there was none, it failed, it was asked for others, or it was taken"
    ))
}
