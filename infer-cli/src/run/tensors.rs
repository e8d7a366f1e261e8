//! Arrays of files and tensors of graphs.

use super::npy::{Array, Kind};
use infer::{
    Error,
    onnx::{DType, Outputs, Tensor, TensorView, Value},
};

/// An array that came out of a graph: an output, or a part of one that is no tensor.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) name: String,
    /// What the graph has; the file may have to have it in another form.
    pub(super) dtype: DType,
    pub(super) array: Array,
}

/// A tensor of an array's elements.
pub(super) fn of_array(name: &str, array: &Array) -> Result<Tensor, Error> {
    if let Some(texts) = array.texts() {
        let texts = texts.map_err(|number| {
            Error::invalid_input(format!(
                "the input `{name}`: text {number} is not Unicode, and bytes are no text of a graph"
            ))
        })?;
        return Tensor::strings(&array.shape, texts);
    }
    let dtype = dtype(array.kind).ok_or_else(|| {
        Error::invalid_input(format!("the input `{name}` is of a type of NumPy's that graphs do not have"))
    })?;
    Tensor::from_bytes(dtype, &array.shape, &array.bytes)
}

/// What has a type of NumPy's in ONNX.
fn dtype(kind: Kind) -> Option<DType> {
    Some(match kind {
        Kind::Number(b'f', 2) => DType::F16,
        Kind::Number(b'f', 4) => DType::F32,
        Kind::Number(b'f', 8) => DType::F64,
        Kind::Number(b'i', 1) => DType::I8,
        Kind::Number(b'i', 2) => DType::I16,
        Kind::Number(b'i', 4) => DType::I32,
        Kind::Number(b'i', 8) => DType::I64,
        Kind::Number(b'u', 1) => DType::U8,
        Kind::Number(b'u', 2) => DType::U16,
        Kind::Number(b'u', 4) => DType::U32,
        Kind::Number(b'u', 8) => DType::U64,
        Kind::Number(b'b', 1) => DType::Bool,
        Kind::Number(b'c', 8) => DType::Complex64,
        Kind::Number(b'c', 16) => DType::Complex128,
        // The package `ml_dtypes` saves it so.
        Kind::Raw(2) => DType::Bf16,
        _ => return None,
    })
}

/// All that a graph has given: a sequence is `NAME.0`, `NAME.1`, …, a map `NAME.keys` and `NAME.values`.
pub(super) fn of_outputs(outputs: Outputs<'_>) -> Result<Vec<Output>, Error> {
    let mut all = Vec::new();
    for (name, value) in outputs.iter() {
        // Tensors are looked at where they are.
        match value?.tensor() {
            Ok(tensor) => all.push(of_tensor(name.to_owned(), tensor)?),
            Err(_) => flatten(name, &outputs.get(name)?.to_value()?, &mut all)?,
        }
    }
    Ok(all)
}

fn flatten(name: &str, value: &Value, all: &mut Vec<Output>) -> Result<(), Error> {
    match value {
        Value::Tensor(tensor) => all.push(of_tensor(name.to_owned(), tensor.view())?),
        Value::Sequence(elements) => {
            for (number, element) in elements.iter().enumerate() {
                flatten(&format!("{name}.{number}"), element, all)?;
            }
        }
        Value::Map(map) => {
            all.push(of_tensor(format!("{name}.keys"), map.keys().view())?);
            all.push(of_tensor(format!("{name}.values"), map.values().view())?);
        }
        // An optional output without a value.
        _ => {}
    }
    Ok(())
}

fn of_tensor(name: String, tensor: TensorView<'_>) -> Result<Output, Error> {
    let array = match tensor.bytes() {
        None => of_texts(&name, tensor)?,
        Some(bytes) => {
            let kind = kind(tensor.dtype()).ok_or_else(|| {
                Error::unsupported(format!(
                    "the output `{name}` is of {}, which NumPy's files do not have",
                    tensor.dtype()
                ))
            })?;
            Array { kind, shape: tensor.shape().to_vec(), bytes: bytes.to_vec() }
        }
    };
    Ok(Output { name, dtype: tensor.dtype(), array })
}

fn of_texts(name: &str, tensor: TensorView<'_>) -> Result<Array, Error> {
    let texts = tensor.to_strings()?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Array::of_texts(tensor.shape(), &texts).map_err(|number| {
        Error::unsupported(format!(
            "the output `{name}`: text {number} ends with U+0000, which NumPy's files do not keep"
        ))
    })
}

/// The type of NumPy's that a type of ONNX has.
fn kind(dtype: DType) -> Option<Kind> {
    Some(match dtype {
        DType::F16 => Kind::Number(b'f', 2),
        DType::F32 => Kind::Number(b'f', 4),
        DType::F64 => Kind::Number(b'f', 8),
        DType::I8 => Kind::Number(b'i', 1),
        DType::I16 => Kind::Number(b'i', 2),
        DType::I32 => Kind::Number(b'i', 4),
        DType::I64 => Kind::Number(b'i', 8),
        DType::U8 => Kind::Number(b'u', 1),
        DType::U16 => Kind::Number(b'u', 2),
        DType::U32 => Kind::Number(b'u', 4),
        DType::U64 => Kind::Number(b'u', 8),
        DType::Bool => Kind::Number(b'b', 1),
        DType::Complex64 => Kind::Number(b'c', 8),
        DType::Complex128 => Kind::Number(b'c', 16),
        DType::Bf16 => Kind::Raw(2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_numpy_has_goes_there_and_back() {
        let numbers = [(b'f', 2), (b'f', 4), (b'f', 8), (b'c', 8), (b'c', 16), (b'b', 1)];
        let integers = [1, 2, 4, 8].into_iter().flat_map(|size| [(b'i', size), (b'u', size)]);
        let all = numbers.into_iter().chain(integers).map(|(letter, size)| Kind::Number(letter, size));
        for of in all.chain([Kind::Raw(2)]) {
            let dtype = dtype(of).unwrap();
            assert_eq!(kind(dtype), Some(of), "{dtype}");
            let size = dtype.bytes(1).unwrap();
            let array = Array { kind: of, shape: vec![3, 1], bytes: vec![1; 3 * size] };
            let tensor = of_array("x", &array).unwrap();
            assert_eq!(of_tensor("x".into(), tensor.view()).unwrap().array, array, "{dtype}");
        }
        assert_eq!((dtype(Kind::Raw(3)), kind(DType::I4)), (None, None));
    }

    #[test]
    fn texts_go_there_and_back_and_what_cannot_is_named() {
        let array = Array::of_texts(&[2], &["é", "two"]).unwrap();
        let tensor = of_array("x", &array).unwrap();
        assert_eq!(of_tensor("x".into(), tensor.view()).unwrap().array, array);
        let tensor = Tensor::strings(&[1], vec!["a\0".into()]).unwrap();
        let error = of_tensor("names".into(), tensor.view()).unwrap_err().to_string();
        assert!(error.contains("`names`: text 0 ends with U+0000"), "{error}");
        let array = Array { kind: Kind::Bytes(1), shape: vec![1], bytes: vec![0xff] };
        assert!(of_array("x", &array).unwrap_err().to_string().contains("text 0 is not Unicode"));
    }

    #[test]
    fn what_is_no_tensor_is_taken_apart() {
        let tensor = |numbers: Vec<i64>| Tensor::new(&[numbers.len()], numbers).unwrap();
        let map = infer::onnx::Map::new(tensor(vec![1, 2]), tensor(vec![3, 4])).unwrap();
        let value = Value::Sequence(vec![Value::Map(map), tensor(vec![5]).into(), Value::Nothing]);
        let mut all = Vec::new();
        flatten("z", &value, &mut all).unwrap();
        let names: Vec<&str> = all.iter().map(|output| output.name.as_str()).collect();
        assert_eq!(names, ["z.0.keys", "z.0.values", "z.1"]);
    }
}
