//! The inputs of a run, looked at.

use super::{
    empty,
    ports::{Ports, check_tensor, other_kind},
};
use crate::{Input, Onnx, Port, TensorView, Value, ValueType, error::invalid_input, raw};
use infer_core::Result;
use std::ops::Deref;

/// Values for inputs, by index, as the runtime takes them.
pub(super) struct Prepared<'a>(Vec<(usize, raw::Borrowed<'a>)>);

impl Prepared<'_> {
    pub(super) fn values(&self) -> &[(usize, impl Deref<Target = raw::Value>)] {
        &self.0
    }
}

/// Looks at each, and at whether all are there.
pub(super) fn prepare<'a, N, V>(
    onnx: &Onnx,
    ports: &Ports,
    inputs: impl IntoIterator<Item = (N, V)>,
) -> Result<Prepared<'a>>
where
    N: AsRef<str>,
    V: Into<Input<'a>>,
{
    let inputs = inputs.into_iter();
    let mut given: Vec<(usize, raw::Borrowed<'a>)> = Vec::with_capacity(inputs.size_hint().0);
    for (name, value) in inputs {
        let name = name.as_ref();
        let index = ports.input(name)?;
        if given.iter().any(|(other, _)| *other == index) {
            return Err(invalid_input(format!("the input {name:?} was given twice")));
        }
        if let Some(value) = input(onnx, &ports.inputs[index], value.into())? {
            given.push((index, value));
        }
    }
    ports.check_given(|index| given.iter().any(|(other, _)| *other == index))?;
    Ok(Prepared(given))
}

/// A value as the runtime takes it; `None` for one that is to be left out.
fn input<'a>(onnx: &Onnx, port: &Port, input: Input<'a>) -> Result<Option<raw::Borrowed<'a>>> {
    match input {
        Input::Tensor(tensor) => self::tensor(port, tensor).map(Some),
        Input::Value(Value::Tensor(tensor)) => self::tensor(port, tensor.view()).map(Some),
        Input::Value(value @ (Value::Sequence(_) | Value::Map(_))) => Ok(Some(collection(onnx, port, value)?.into())),
        Input::Value(Value::Nothing) | Input::Nothing if port.is_optional() => Ok(None),
        Input::Value(Value::Nothing) | Input::Nothing => Err(other_kind("input", port, "nothing")),
    }
}

fn tensor<'a>(port: &Port, tensor: TensorView<'a>) -> Result<raw::Borrowed<'a>> {
    check_tensor("input", port, tensor.dtype(), tensor.shape())?;
    tensor.to_raw()
}

/// A value in memory of the runtime's own.
pub(super) fn copied(onnx: &Onnx, port: &Port, value: &Value) -> Result<raw::Value> {
    match value {
        Value::Tensor(tensor) => {
            check_tensor("input", port, tensor.dtype(), tensor.shape())?;
            tensor.view().to_raw_copy()
        }
        Value::Sequence(_) | Value::Map(_) => collection(onnx, port, value),
        Value::Nothing => Err(other_kind("input", port, "nothing")),
    }
}

fn collection(onnx: &Onnx, port: &Port, value: &Value) -> Result<raw::Value> {
    let declared = match &port.kind {
        ValueType::Optional(inner) => inner,
        kind => kind,
    };
    check_value(port, declared, value)?;
    if let (ValueType::Sequence(element), Value::Sequence(elements)) = (declared, value)
        && elements.is_empty()
    {
        return empty::sequence(onnx, element);
    }
    value.to_raw_copy()
}

/// Whether a value is of a type, its elements too.
fn check_value(port: &Port, declared: &ValueType, value: &Value) -> Result<()> {
    match (declared, value) {
        (ValueType::Tensor { dtype, .. }, Value::Tensor(tensor)) if tensor.dtype() == *dtype => Ok(()),
        (ValueType::Tensor { .. }, Value::Tensor(tensor)) => {
            Err(other_kind("input", port, &format!("something with elements of {}", tensor.dtype())))
        }
        (ValueType::Sequence(element), Value::Sequence(elements)) => {
            elements.iter().try_for_each(|value| check_value(port, element, value))
        }
        (ValueType::Map { key, value }, Value::Map(map)) => {
            let fits = map.keys().dtype() == *key && value.dtype() == Some(map.values().dtype());
            let (keys, values) = (map.keys().dtype(), map.values().dtype());
            if fits { Ok(()) } else { Err(other_kind("input", port, &format!("a map from {keys} to {values}"))) }
        }
        (_, value) => Err(other_kind("input", port, value.what())),
    }
}
