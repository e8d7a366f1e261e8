//! GGUF files, written: for models that tests make up and for those that are converted.
//!
//! Nothing is checked here, so that a test can write what is wrong as well.
//!
//! ```
//! use build_support::gguf::{Field, Gguf, Tensor};
//!
//! let mut file = Gguf::new();
//! file.set("general.architecture", Field::text("llama")).set("llama.block_count", Field::U32(1));
//! file.tensors.push(Tensor::f32("output_norm.weight", &[4], [1.0, 1.0, 1.0, 1.0]));
//! let bytes = file.bytes();
//! assert_eq!(&bytes[..4], b"GGUF");
//! assert_eq!(bytes.len() % 32, 0);
//! ```

use std::io::{self, Write};

/// A file to be written.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// Of the format: 3.
    pub version: u32,
    /// The metadata, in the order of the file.
    pub fields: Vec<(Vec<u8>, Field)>,
    /// The tensors, in the order of the file.
    pub tensors: Vec<Tensor>,
    /// Each tensor begins at a multiple of this. Another one than 32 has to be said in `general.alignment` too.
    pub alignment: usize,
}

/// A metadata value with its type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "each is named by what it holds")]
pub enum Field {
    U8(u8),
    U16(u16),
    U32(u32),
    I32(i32),
    U64(u64),
    F32(f32),
    Bool(bool),
    Str(Vec<u8>),
    U32s(Vec<u32>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    Strs(Vec<Vec<u8>>),
    /// Type and payload as they are.
    Raw(u32, Vec<u8>),
}

/// A tensor with its numbers.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Its name in the file.
    pub name: String,
    /// Sizes, the contiguous dimension first.
    pub shape: Vec<u64>,
    /// ggml's number of the format: 0 is F32, 1 is F16.
    pub dtype: u32,
    /// The numbers as they lie in the file.
    pub data: Vec<u8>,
}

impl Gguf {
    /// Version 3, aligned to 32, with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self { version: 3, fields: Vec::new(), tensors: Vec::new(), alignment: 32 }
    }

    /// Sets a field, in place if it is there.
    pub fn set(&mut self, key: &str, value: Field) -> &mut Self {
        match self.fields.iter_mut().find(|(name, _)| name == key.as_bytes()) {
            Some((_, old)) => *old = value,
            None => self.fields.push((key.into(), value)),
        }
        self
    }

    /// Takes a field out, if it is there.
    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.fields.retain(|(name, _)| name != key.as_bytes());
        self
    }

    /// The tensor of that name.
    ///
    /// # Panics
    /// When there is none.
    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    /// The strings of an array field.
    ///
    /// # Panics
    /// When there is no such field, or it is of another type.
    pub fn strings(&mut self, key: &str) -> &mut Vec<Vec<u8>> {
        match self.fields.iter_mut().find(|(name, _)| name == key.as_bytes()) {
            Some((_, Field::Strs(strings))) => strings,
            _ => panic!("no strings {key}"),
        }
    }

    /// Everything before the tensors' data, padded to the alignment.
    #[must_use]
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(b"GGUF");
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.fields.len() as u64).to_le_bytes());
        for (key, value) in &self.fields {
            string(&mut out, key);
            value.write(&mut out);
        }
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            string(&mut out, tensor.name.as_bytes());
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            tensor.shape.iter().for_each(|size| out.extend(size.to_le_bytes()));
            out.extend(tensor.dtype.to_le_bytes());
            out.extend(offset.to_le_bytes());
            offset += tensor.data.len().next_multiple_of(self.alignment) as u64;
        }
        out.resize(out.len().next_multiple_of(self.alignment), 0);
        out
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_to(&self, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&self.header())?;
        for tensor in &self.tensors {
            to.write_all(&tensor.data)?;
            let end = tensor.data.len();
            to.write_all(&vec![0; end.next_multiple_of(self.alignment) - end])?;
        }
        Ok(())
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_to(&mut out).expect("a vector takes everything");
        out
    }
}

impl Default for Gguf {
    fn default() -> Self {
        Self::new()
    }
}

impl Tensor {
    /// A tensor of 32-bit floats.
    #[must_use]
    pub fn f32(name: impl Into<String>, shape: &[u64], numbers: impl IntoIterator<Item = f32>) -> Self {
        let data = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
        Self { name: name.into(), shape: shape.to_vec(), dtype: 0, data }
    }
}

impl Field {
    /// A string.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Str(text.into())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut kind = |id: u32| out.extend(id.to_le_bytes());
        match self {
            Self::U8(_) => kind(0),
            Self::U16(_) => kind(2),
            Self::U32(_) => kind(4),
            Self::I32(_) => kind(5),
            Self::F32(_) => kind(6),
            Self::Bool(_) => kind(7),
            Self::Str(_) => kind(8),
            Self::U64(_) => kind(10),
            Self::U32s(_) => [9, 4].into_iter().for_each(kind),
            Self::I32s(_) => [9, 5].into_iter().for_each(kind),
            Self::F32s(_) => [9, 6].into_iter().for_each(kind),
            Self::Strs(_) => [9, 8].into_iter().for_each(kind),
            Self::Raw(id, _) => kind(*id),
        }
        match self {
            Self::U8(value) => out.push(*value),
            Self::U16(value) => out.extend(value.to_le_bytes()),
            Self::U32(value) => out.extend(value.to_le_bytes()),
            Self::I32(value) => out.extend(value.to_le_bytes()),
            Self::F32(value) => out.extend(value.to_le_bytes()),
            Self::U64(value) => out.extend(value.to_le_bytes()),
            Self::Bool(value) => out.push(u8::from(*value)),
            Self::Str(text) => string(out, text),
            Self::U32s(items) => array(out, items, |out, item| out.extend(item.to_le_bytes())),
            Self::I32s(items) => array(out, items, |out, item| out.extend(item.to_le_bytes())),
            Self::F32s(items) => array(out, items, |out, item| out.extend(item.to_le_bytes())),
            Self::Strs(items) => array(out, items, |out, item| string(out, item)),
            Self::Raw(_, payload) => out.extend(payload),
        }
    }
}

fn array<T>(out: &mut Vec<u8>, items: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.extend((items.len() as u64).to_le_bytes());
    items.iter().for_each(|item| write(out, item));
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}
