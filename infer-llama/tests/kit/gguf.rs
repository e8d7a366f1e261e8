//! GGUF files written by hand, right or wrong.

/// A file to be written.
#[derive(Clone)]
pub(crate) struct Gguf {
    pub(crate) version: u32,
    pub(crate) fields: Vec<(Vec<u8>, Field)>,
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) alignment: usize,
}

/// A metadata value with its type.
#[derive(Clone)]
pub(crate) enum Field {
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

#[derive(Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) dtype: u32,
    pub(crate) data: Vec<u8>,
}

impl Gguf {
    pub(crate) fn new() -> Self {
        Self { version: 3, fields: Vec::new(), tensors: Vec::new(), alignment: 32 }
    }

    /// Sets a field, in place if it is there.
    pub(crate) fn set(&mut self, key: &str, value: Field) -> &mut Self {
        match self.fields.iter_mut().find(|(name, _)| name == key.as_bytes()) {
            Some((_, old)) => *old = value,
            None => self.fields.push((key.into(), value)),
        }
        self
    }

    pub(crate) fn remove(&mut self, key: &str) -> &mut Self {
        self.fields.retain(|(name, _)| name != key.as_bytes());
        self
    }

    pub(crate) fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    /// The strings of an array field.
    pub(crate) fn strings(&mut self, key: &str) -> &mut Vec<Vec<u8>> {
        match self.fields.iter_mut().find(|(name, _)| name == key.as_bytes()) {
            Some((_, Field::Strs(strings))) => strings,
            _ => panic!("no strings {key}"),
        }
    }

    /// Everything before the tensors' data, padded to the alignment.
    pub(crate) fn header(&self) -> Vec<u8> {
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

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.header();
        for tensor in &self.tensors {
            out.extend(&tensor.data);
            out.resize(out.len().next_multiple_of(self.alignment), 0);
        }
        out
    }
}

impl Field {
    pub(crate) fn text(text: &str) -> Self {
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
            Self::U32s(_) => [9, 4].map(kind).into_iter().collect(),
            Self::I32s(_) => [9, 5].map(kind).into_iter().collect(),
            Self::F32s(_) => [9, 6].map(kind).into_iter().collect(),
            Self::Strs(_) => [9, 8].map(kind).into_iter().collect(),
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
            Self::U32s(items) => array(out, items, |item| item.to_le_bytes().to_vec()),
            Self::I32s(items) => array(out, items, |item| item.to_le_bytes().to_vec()),
            Self::F32s(items) => array(out, items, |item| item.to_le_bytes().to_vec()),
            Self::Strs(items) => array(out, items, |item| {
                let mut bytes = Vec::new();
                string(&mut bytes, item);
                bytes
            }),
            Self::Raw(_, payload) => out.extend(payload),
        }
    }
}

fn array<T>(out: &mut Vec<u8>, items: &[T], bytes: impl Fn(&T) -> Vec<u8>) {
    out.extend((items.len() as u64).to_le_bytes());
    items.iter().for_each(|item| out.extend(bytes(item)));
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text);
}
