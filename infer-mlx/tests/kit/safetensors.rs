//! Safetensors files, written.

/// A tensor to write: its name, the format's name of its type, its shape, its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Tensor {
    /// A tensor of zeros.
    pub(crate) fn zeros(name: impl Into<String>, dtype: &'static str, shape: &[usize]) -> Self {
        let size = match dtype {
            "BOOL" | "U8" | "I8" => 1,
            "F16" | "BF16" | "U16" | "I16" => 2,
            "F32" | "U32" | "I32" => 4,
            _ => 8,
        };
        let bytes = vec![0; shape.iter().product::<usize>() * size];
        Self { name: name.into(), dtype, shape: shape.to_vec(), bytes }
    }
}

/// A file of these, one behind the other.
pub(crate) fn file(tensors: &[Tensor]) -> Vec<u8> {
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for Tensor { name, dtype, shape, bytes } in tensors {
        let (begin, end) = (data.len(), data.len() + bytes.len());
        entries.push(format!(
            "{name:?}: {{\"dtype\": {dtype:?}, \"shape\": {shape:?}, \"data_offsets\": [{begin}, {end}]}}"
        ));
        data.extend_from_slice(bytes);
    }
    with_header(&format!("{{{}}}", entries.join(", ")), &data)
}

/// A file with this header.
pub(crate) fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}
