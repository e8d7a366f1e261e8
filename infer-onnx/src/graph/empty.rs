//! Sequences of nothing.
//!
//! The runtime makes a sequence of its elements, and refuses to make one of none. A graph can: so this is one, of one node.

use crate::{
    DType, GraphOptions, Onnx, ValueType,
    error::{error, invalid_input},
    raw,
};
use infer_core::{ErrorKind, Result};

/// A sequence of no elements that are of this type.
pub(super) fn sequence(onnx: &Onnx, element: &ValueType) -> Result<raw::Value> {
    let ValueType::Tensor { dtype, .. } = element else {
        let message = format!(
            "a sequence of nothing can be made where its elements would be tensors, not where they are {element}"
        );
        return Err(error(ErrorKind::Unsupported, message));
    };
    let model = model(number(*dtype)?);
    let options = GraphOptions::new().with_threads(1).session(onnx)?;
    let mut session = raw::Session::from_bytes(onnx.environment(), options, None, &model)?;
    let (inputs, mut outputs): ([(usize, &raw::Value); 0], _) = ([], [(0, None)]);
    session.run(&raw::RunOptions::new("empty sequence")?, &inputs, &mut outputs)?;
    let [(_, value)] = outputs;
    value.ok_or_else(|| error(ErrorKind::Runtime, "ONNX Runtime made no sequence"))
}

/// What ONNX calls the types that `SequenceEmpty` takes.
fn number(dtype: DType) -> Result<u8> {
    Ok(match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::String => 8,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::Bf16 => 16,
        other => return Err(invalid_input(format!("ONNX Runtime has no sequences of {other}"))),
    })
}

/// An ONNX model whose one output is what `SequenceEmpty` makes of elements of this type.
fn model(number: u8) -> Vec<u8> {
    let attribute = [text(1, "dtype"), varint(3, number), varint(20, 2)].concat();
    let node = [text(2, "s"), text(4, "SequenceEmpty"), message(5, &attribute)].concat();
    let tensor = message(1, &varint(1, number));
    let output = [text(1, "s"), message(2, &message(4, &message(1, &tensor)))].concat();
    let graph = [message(1, &node), text(2, "empty"), message(12, &output)].concat();
    let opset = [text(1, ""), varint(2, 17)].concat();
    [varint(1, 8), message(7, &graph), message(8, &opset)].concat()
}

/// A field with a small number.
fn varint(field: u8, value: u8) -> Vec<u8> {
    [tag(field, 0), vec![value]].concat()
}

fn text(field: u8, value: &str) -> Vec<u8> {
    message(field, value.as_bytes())
}

/// A field with bytes, of which there are few.
fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
    let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
    [tag(field, 2), vec![len], bytes.to_vec()].concat()
}

/// What a field begins with: its number and kind, in one byte up to field 15, else in two.
fn tag(field: u8, kind: u8) -> Vec<u8> {
    if field < 16 { vec![field << 3 | kind] } else { vec![(field & 15) << 3 | kind | 0x80, field >> 4] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header;

    #[test]
    fn the_model_is_one() {
        let model = model(number(DType::I64).unwrap());
        assert!(model.len() < 128, "its parts have lengths of one byte: {}", model.len());
        let header = header::read(std::io::Cursor::new(model), "empty").unwrap();
        assert_eq!((header.graph_name(), header.opset("")), ("empty", Some(17)));
        assert!(number(DType::I4).is_err());
    }
}
