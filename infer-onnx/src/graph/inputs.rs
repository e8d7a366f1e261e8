//! The inputs of a run, looked at.

use super::{
    empty,
    ports::{Ports, check_tensor, other_kind},
};
use crate::{Input, Onnx, Port, TensorView, Value, ValueType, error::invalid_input, raw};
use infer_core::Result;

/// Gives them to a run. Looks at each, and at whether all are there.
pub(super) fn give<'a, N, V>(
    onnx: &Onnx,
    ports: &Ports,
    inputs: impl IntoIterator<Item = (N, V)>,
    call: &mut raw::Call<'_, 'a>,
) -> Result<()>
where
    N: AsRef<str>,
    V: Into<Input<'a>>,
{
    for (place, (name, value)) in inputs.into_iter().enumerate() {
        let name = name.as_ref();
        let index = ports.input_near(place, name)?;
        if call.is_given(index) {
            return Err(invalid_input(format!("the input {name:?} was given twice")));
        }
        let port = &ports.inputs[index];
        match value.into() {
            Input::Tensor(tensor) => self::tensor(port, tensor, index, call)?,
            Input::Value(Value::Tensor(tensor)) => self::tensor(port, tensor.view(), index, call)?,
            Input::Value(value @ (Value::Sequence(_) | Value::Map(_))) => {
                call.give(index, collection(onnx, port, value)?)?;
            }
            Input::Value(Value::Nothing) | Input::Nothing if port.is_optional() => {}
            Input::Value(Value::Nothing) | Input::Nothing => return Err(other_kind("input", port, "nothing")),
        }
    }
    ports.check_given(|index| call.is_given(index))
}

fn tensor<'a>(port: &Port, tensor: TensorView<'a>, index: usize, call: &mut raw::Call<'_, 'a>) -> Result<()> {
    let (dtype, shape, bytes) = (tensor.dtype(), tensor.shape(), tensor.bytes());
    // What was lent before was looked at then.
    if bytes.is_some_and(|bytes| call.lend_again(index, dtype, shape, bytes)) {
        return Ok(());
    }
    check_tensor("input", port, dtype, shape)?;
    match bytes {
        Some(bytes) => call.lend(index, dtype, shape, bytes),
        None => call.give(index, tensor.to_raw_copy()?),
    }
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
