//! From bytes to a [`Header`], trusting none of them.
//!
//! Memory is bounded by what has been read, never by what the header claims: nothing is reserved for a count before the
//! file is known to be long enough for it, and the header as a whole has a limit.

use super::{
    Array, DType, Value,
    header::{Header, Part, Tensor},
    value::Strings,
};
use infer_core::{Error, ErrorKind, Result};
use std::{
    collections::HashSet,
    io::{BufReader, ErrorKind as IoErrorKind, Read, Seek, SeekFrom},
    path::Path,
};

/// Headers of real models stay under 40 MB (a vocabulary of 262,144 tokens with its merges); a larger one is an attack.
const MAX_HEADER: u64 = 256 << 20;
/// One less than what ggml reserves for a name, its NUL included.
const MAX_TENSOR_NAME: usize = 63;
const DEFAULT_ALIGNMENT: u64 = 32;

/// Reads one file's header from its beginning.
pub(super) fn read(file: impl Read + Seek, path: &Path) -> Result<Header> {
    let mut cursor = Cursor::new(file, path)?;
    let version = read_preamble(&mut cursor)?;
    let tensor_count = cursor.count("the number of tensors", 8 + 4 + 8 + 4 + 8)?;
    let field_count = cursor.count("the number of metadata fields", 8 + 1 + 4 + 1)?;
    let mut metadata = Vec::new();
    for index in 0..field_count {
        metadata.push(read_field(&mut cursor, index)?);
    }
    refuse_twins(&cursor, "the metadata field", metadata.iter().map(|(key, _)| key.as_str()))?;
    let alignment = read_alignment(&cursor, &metadata)?;
    let mut tensors = Vec::new();
    for index in 0..tensor_count {
        tensors.push(read_tensor(&mut cursor, index)?);
    }
    refuse_twins(&cursor, "the tensor", tensors.iter().map(|tensor| tensor.name.as_str()))?;
    // At most 256 MiB plus an alignment under 4 GiB.
    let data = if tensors.is_empty() { cursor.at } else { cursor.at.next_multiple_of(alignment) };
    place(&cursor, &mut tensors, data, alignment)?;
    let part = Part { path: path.to_owned(), bytes: cursor.len, data };
    Ok(Header { version, metadata, tensors, parts: vec![part] })
}

fn read_preamble<R: Read>(cursor: &mut Cursor<'_, R>) -> Result<u32> {
    if cursor.len == 0 {
        return Err(cursor.invalid("the file is empty"));
    }
    let magic: [u8; 4] = cursor.bytes("the magic")?;
    if magic != *b"GGUF" {
        let shown = magic.escape_ascii();
        return Err(cursor.invalid(format!("this is no GGUF file: it begins with \"{shown}\" instead of \"GGUF\"")));
    }
    let version = cursor.u32("the version")?;
    match version {
        2 | 3 => Ok(version),
        1 => Err(cursor.invalid("GGUF version 1 is no longer read; convert the model again")),
        swapped if swapped & 0xffff == 0 && swapped != 0 => Err(cursor
            .invalid("this GGUF file is of the other byte order (big-endian); convert the model for this machine")),
        other => Err(cursor.invalid(format!("GGUF version {other} is not known; versions 2 and 3 are"))),
    }
}

fn read_field<R: Read>(cursor: &mut Cursor<'_, R>, index: u64) -> Result<(String, Value)> {
    let what = format!("the name of metadata field {index}");
    let key = cursor.string(&what)?;
    let key = plain_name(key).ok_or_else(|| cursor.invalid(format!("{what} is empty, has a NUL or is not UTF-8")))?;
    let what = format!("the metadata field {key}");
    let kind = cursor.u32(&what)?;
    let value = if kind == 9 { Value::Array(read_array(cursor, &what)?) } else { read_scalar(cursor, kind, &what)? };
    Ok((key, value))
}

fn read_scalar<R: Read>(cursor: &mut Cursor<'_, R>, kind: u32, what: &str) -> Result<Value> {
    Ok(match kind {
        0 => Value::U8(u8::from_le_bytes(cursor.bytes(what)?)),
        1 => Value::I8(i8::from_le_bytes(cursor.bytes(what)?)),
        2 => Value::U16(u16::from_le_bytes(cursor.bytes(what)?)),
        3 => Value::I16(i16::from_le_bytes(cursor.bytes(what)?)),
        4 => Value::U32(u32::from_le_bytes(cursor.bytes(what)?)),
        5 => Value::I32(i32::from_le_bytes(cursor.bytes(what)?)),
        6 => Value::F32(f32::from_le_bytes(cursor.bytes(what)?)),
        7 => Value::Bool(cursor.bytes::<1>(what)? != [0]),
        8 => Value::String(cursor.string(what)?.into()),
        10 => Value::U64(u64::from_le_bytes(cursor.bytes(what)?)),
        11 => Value::I64(i64::from_le_bytes(cursor.bytes(what)?)),
        12 => Value::F64(f64::from_le_bytes(cursor.bytes(what)?)),
        _ => return Err(cursor.invalid(format!("{what} is of type {kind}, which GGUF does not have"))),
    })
}

fn read_array<R: Read>(cursor: &mut Cursor<'_, R>, what: &str) -> Result<Array> {
    let kind = cursor.u32(what)?;
    Ok(match kind {
        0 => Array::U8(cursor.numbers(what, u8::from_le_bytes)?),
        1 => Array::I8(cursor.numbers(what, i8::from_le_bytes)?),
        2 => Array::U16(cursor.numbers(what, u16::from_le_bytes)?),
        3 => Array::I16(cursor.numbers(what, i16::from_le_bytes)?),
        4 => Array::U32(cursor.numbers(what, u32::from_le_bytes)?),
        5 => Array::I32(cursor.numbers(what, i32::from_le_bytes)?),
        6 => Array::F32(cursor.numbers(what, f32::from_le_bytes)?),
        7 => Array::Bool(cursor.numbers(what, |byte: [u8; 1]| byte != [0])?),
        8 => {
            let mut strings = Strings::default();
            for _ in 0..cursor.count(what, 8)? {
                let text = cursor.string(what)?;
                strings.push(&text).ok_or_else(|| cursor.invalid(format!("the strings of {what} take 4 GiB")))?;
            }
            Array::String(strings)
        }
        10 => Array::U64(cursor.numbers(what, u64::from_le_bytes)?),
        11 => Array::I64(cursor.numbers(what, i64::from_le_bytes)?),
        12 => Array::F64(cursor.numbers(what, f64::from_le_bytes)?),
        _ => return Err(cursor.invalid(format!("{what} is an array of type {kind}, which GGUF does not have"))),
    })
}

fn read_alignment<R>(cursor: &Cursor<'_, R>, metadata: &[(String, Value)]) -> Result<u64> {
    let field = metadata.iter().find(|(key, _)| key == "general.alignment");
    match field.map(|(_, value)| value) {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(&Value::U32(alignment)) if alignment.is_power_of_two() => Ok(alignment.into()),
        Some(Value::U32(other)) => Err(cursor.invalid(format!("general.alignment is {other}, not a power of two"))),
        Some(other) => Err(cursor.invalid(format!("general.alignment is of type {}, not u32", other.type_name()))),
    }
}

fn read_tensor<R: Read>(cursor: &mut Cursor<'_, R>, index: u64) -> Result<Tensor> {
    let what = format!("the description of tensor {index}");
    let name = cursor.string(&what)?;
    if name.len() > MAX_TENSOR_NAME {
        return Err(cursor.invalid(format!("the name of tensor {index} has {} bytes, 63 are allowed", name.len())));
    }
    let name = plain_name(name)
        .ok_or_else(|| cursor.invalid(format!("the name of tensor {index} is empty, has a NUL or is not UTF-8")))?;
    let what = format!("the description of tensor {name}");
    let rank = cursor.u32(&what)?;
    if rank > 4 {
        return Err(cursor.invalid(format!("the tensor {name} has {rank} dimensions, at most 4 are allowed")));
    }
    let mut shape = Vec::with_capacity(rank as usize);
    for _ in 0..rank {
        shape.push(cursor.u64(&what)?);
    }
    let elements = shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size));
    let elements = elements.filter(|&count| i64::try_from(count).is_ok() && count > 0).ok_or_else(|| {
        cursor.invalid(format!("the tensor {name} has the shape {shape:?}: that is nothing, or overflows"))
    })?;
    let id = cursor.u32(&what)?;
    let dtype = DType::from_id(id)
        .ok_or_else(|| cursor.invalid(format!("the tensor {name} is of type {id}, which llama.cpp does not read")))?;
    let row = shape.first().copied().unwrap_or(1);
    let bytes = dtype.bytes(elements).filter(|_| row.is_multiple_of(dtype.block())).ok_or_else(|| {
        cursor.invalid(format!(
            "rows of the tensor {name} have {row} elements, {dtype} needs multiples of {}",
            dtype.block()
        ))
    })?;
    Ok(Tensor { name, shape, dtype, elements, bytes, offset: cursor.u64(&what)?, part: 0 })
}

/// Checks that the tensors lie one behind the other inside the file, and turns their offsets into those in the file.
fn place<R>(cursor: &Cursor<'_, R>, tensors: &mut [Tensor], data: u64, alignment: u64) -> Result<()> {
    let mut next = 0_u64;
    for tensor in tensors {
        let name = &tensor.name;
        if tensor.offset != next {
            return Err(cursor.invalid(format!("the tensor {name} is said to lie at {}, not at {next}", tensor.offset)));
        }
        let overflow = || cursor.invalid(format!("the tensor {name} of {} bytes overflows the file", tensor.bytes));
        let end = next.checked_add(tensor.bytes).ok_or_else(overflow)?;
        tensor.offset = data.checked_add(next).ok_or_else(overflow)?;
        let end_in_file = data.checked_add(end).ok_or_else(overflow)?;
        if end_in_file > cursor.len {
            return Err(cursor.invalid(format!(
                "the tensor {name} ends at byte {end_in_file}, the file at {}: it is truncated; get it again",
                cursor.len
            )));
        }
        next = end.checked_next_multiple_of(alignment).ok_or_else(overflow)?;
    }
    Ok(())
}

/// A name that C, Rust and people read alike.
fn plain_name(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|name| !name.is_empty() && !name.contains('\0'))
}

fn refuse_twins<'a, R>(cursor: &Cursor<'_, R>, what: &str, names: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(cursor.invalid(format!("{what} {name} is there twice")));
        }
    }
    Ok(())
}

/// A file with the position in it, and words for what goes wrong there.
struct Cursor<'p, R> {
    file: BufReader<R>,
    path: &'p Path,
    at: u64,
    len: u64,
}

impl<'p, R: Read + Seek> Cursor<'p, R> {
    fn new(mut file: R, path: &'p Path) -> Result<Self> {
        let failed = |error: std::io::Error| unreadable(path, error);
        let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Self { file: BufReader::with_capacity(1 << 16, file), path, at: 0, len })
    }
}

impl<R> Cursor<'_, R> {
    fn invalid(&self, message: impl AsRef<str>) -> Error {
        super::invalid(self.path, message)
    }
}

impl<R: Read> Cursor<'_, R> {
    fn fill(&mut self, buf: &mut [u8], what: &str) -> Result<()> {
        let size = buf.len() as u64;
        if size > self.len - self.at {
            return Err(self.truncated(what));
        }
        if self.at + size > MAX_HEADER {
            return Err(self.invalid(format!("{what} lies beyond the {} MiB a header may take", MAX_HEADER >> 20)));
        }
        self.file.read_exact(buf).map_err(|error| match error.kind() {
            // The file shrank while it was read.
            IoErrorKind::UnexpectedEof => self.truncated(what),
            _ => unreadable(self.path, error),
        })?;
        self.at += size;
        Ok(())
    }

    fn truncated(&self, what: &str) -> Error {
        self.invalid(format!("the file ends at byte {}, inside {what}: it is truncated; get it again", self.len))
    }

    fn bytes<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32> {
        self.bytes(what).map(u32::from_le_bytes)
    }

    fn u64(&mut self, what: &str) -> Result<u64> {
        self.bytes(what).map(u64::from_le_bytes)
    }

    /// A count of things that take at least `size` bytes each, refused where the file has not that many.
    fn count(&mut self, what: &str, size: u64) -> Result<u64> {
        let count = self.u64(what)?;
        let left = self.len.min(MAX_HEADER).saturating_sub(self.at);
        if count > left / size {
            return Err(self.invalid(format!(
                "{what}: {count} entries are claimed, the {left} bytes that are left of the header cannot hold them"
            )));
        }
        Ok(count)
    }

    fn string(&mut self, what: &str) -> Result<Vec<u8>> {
        let len = self.count(what, 1)?;
        let mut bytes = vec![0; usize::try_from(len).expect("a header fits the address space")];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    fn numbers<T, const N: usize>(&mut self, what: &str, decode: impl Fn([u8; N]) -> T) -> Result<Vec<T>> {
        let count = self.count(what, N as u64)?;
        let mut numbers = Vec::with_capacity(usize::try_from(count).expect("a header fits the address space"));
        for _ in 0..count {
            numbers.push(decode(self.bytes(what)?));
        }
        Ok(numbers)
    }
}

pub(super) fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{} cannot be read: {error}", path.display())).with_source(error)
}
