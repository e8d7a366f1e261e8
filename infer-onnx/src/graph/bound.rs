//! Values that stay bound from run to run.

use super::{
    Outputs, inputs, outputs,
    ports::{Ports, check_tensor, other_kind},
};
use crate::{Element, Onnx, TensorView, TensorViewMut, Value, error::invalid_input, raw, tensor::raw_shape};
use infer_core::Result;
use std::{fmt, sync::Arc};

/// Inputs and outputs of a graph that stay bound from run to run, so that a run does nothing but run: it looks up no name and allocates nothing
/// in Rust.
///
/// What is bound is borrowed for `'m` ([`bind_input`](Self::bind_input), [`bind_output`](Self::bind_output)) or belongs to the binding
/// ([`bind_zeros`](Self::bind_zeros), whose elements [`input_mut`](Self::input_mut) changes between runs). Outputs that are not bound go into
/// memory of the runtime's choice, and are lent by [`outputs`](Self::outputs) until the next run.
///
/// ```no_run
/// # use infer_onnx::{Graph, TensorViewMut};
/// # fn run(graph: &mut Graph) -> infer_core::Result<()> {
/// let mut y = vec![0.0_f32; 64];
/// let mut binding = graph.binding()?;
/// binding.bind_zeros("x", &[1, 64])?;
/// binding.bind_output("y", TensorViewMut::new(&[1, 64], &mut y)?)?;
/// for step in 0..3 {
///     binding.input_mut::<f32>("x")?.fill(step as f32);
///     graph.run_bound(&mut binding)?;
///     println!("{:?}", binding.outputs().tensor("y")?.as_slice::<f32>()?);
/// }
/// drop(binding);
/// println!("{y:?}"); // the last run's
/// # Ok(())
/// # }
/// ```
pub struct Binding<'m> {
    raw: raw::Binding<'m>,
    ports: Arc<Ports>,
    onnx: Onnx,
    /// Whether the last run with it succeeded: whether there are outputs.
    has_run: bool,
}

impl<'m> Binding<'m> {
    pub(super) fn new(mut raw: raw::Binding<'m>, ports: Arc<Ports>, onnx: Onnx) -> Result<Self> {
        for index in 0..ports.outputs.len() {
            raw.bind_output_to_cpu(index)?;
        }
        Ok(Self { raw, ports, onnx, has_run: false })
    }

    /// Binds a tensor as an input, in the place of what was bound before. It is not copied, but for strings.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such input, or the tensor is none for it.
    pub fn bind_input(&mut self, name: &str, tensor: TensorView<'m>) -> Result<()> {
        let index = self.ports.input(name)?;
        check_tensor("input", &self.ports.inputs[index], tensor.dtype(), tensor.shape())?;
        self.has_run = false;
        self.raw.bind_input(index, tensor.to_raw()?)
    }

    /// Binds a value of any kind as an input, copied.
    ///
    /// # Errors
    /// As of [`bind_input`](Self::bind_input).
    pub fn bind_value(&mut self, name: &str, value: &Value) -> Result<()> {
        let index = self.ports.input(name)?;
        let value = inputs::copied(&self.onnx, &self.ports.inputs[index], value)?;
        self.has_run = false;
        self.raw.bind_input(index, value)
    }

    /// Binds a tensor of zeros, which belongs to the binding: see [`input_mut`](Self::input_mut). Its elements are of the input's type.
    ///
    /// # Errors
    /// As of [`bind_input`](Self::bind_input).
    pub fn bind_zeros(&mut self, name: &str, shape: &[usize]) -> Result<()> {
        let index = self.ports.input(name)?;
        let port = &self.ports.inputs[index];
        let dtype = port.kind.dtype().ok_or_else(|| other_kind("input", port, "a tensor"))?;
        check_tensor("input", port, dtype, shape)?;
        self.has_run = false;
        self.raw.bind_input(index, raw::Value::tensor(dtype, raw_shape(shape)?.native())?)
    }

    /// The elements of an input that was bound by [`bind_zeros`](Self::bind_zeros), to be changed for the next run.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such input, nothing that can be written is bound as it, or its
    /// elements are of another type.
    pub fn input_mut<T: Element>(&mut self, name: &str) -> Result<&mut [T]> {
        let index = self.ports.input(name)?;
        self.raw
            .input_elements_mut(index)
            .map_err(|why| invalid_input(format!("the input {name:?}: {}", super::words(&why))))
    }

    /// Binds memory of the caller's as an output: runs write there. It must have the shape that the graph gives.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such output, the memory is not for what it gives, or the
    /// output is an input handed through, which is written nowhere.
    pub fn bind_output(&mut self, name: &str, memory: TensorViewMut<'m>) -> Result<()> {
        let index = self.ports.output(name)?;
        check_tensor("output", &self.ports.outputs[index], memory.dtype(), memory.shape())?;
        self.has_run = false;
        self.raw.bind_output(index, memory.into_raw()?)
    }

    /// Has an output go into memory of the runtime's choice again.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such output.
    pub fn unbind_output(&mut self, name: &str) -> Result<()> {
        let index = self.ports.output(name)?;
        self.has_run = false;
        self.raw.bind_output_to_cpu(index)
    }

    /// What the last run gave; nothing before the first, after an error, and after anything was bound anew.
    #[must_use]
    pub fn outputs(&self) -> Outputs<'_> {
        Outputs::of_binding(&self.ports, self.has_run.then_some(&self.raw))
    }

    /// Takes what the last run gave for an output, without copying it. The next run puts it somewhere else.
    ///
    /// # Errors
    /// [`InvalidInput`](infer_core::ErrorKind::InvalidInput) when the graph has no such output, the last run gave none, or it is bound to
    /// memory of the caller's.
    pub fn take(&mut self, output: &str) -> Result<Value> {
        let index = self.ports.output(output)?;
        let value = if self.has_run { self.raw.take_output(index)? } else { None };
        Value::of_runtime(value.ok_or_else(|| outputs::not_there(output))?)
    }

    /// What the last run gave is shown no more.
    pub(super) fn forget(&mut self) {
        self.has_run = false;
    }

    pub(super) fn run(&mut self, session: &mut raw::Session, options: &raw::RunOptions) -> Result<()> {
        self.forget();
        self.ports.check_given(|index| self.raw.is_bound(index))?;
        session.run_bound(options, &mut self.raw)?;
        self.has_run = true;
        Ok(())
    }
}

impl fmt::Debug for Binding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding").field("outputs", &self.outputs()).finish_non_exhaustive()
    }
}
