//! From bytes to a [`Header`], trusting none of them. Memory is bounded by the file's own size.

use super::{Header, Tensor, unreadable};
use crate::{DType, error::error};
use infer_core::{Error, ErrorKind, Result};
use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{
    collections::HashSet,
    fmt,
    io::{ErrorKind as IoErrorKind, Read, Seek, SeekFrom},
    path::Path,
};

/// The length of the header comes first, in so many bytes.
const PREFIX: u64 = 8;
/// What the format's own library takes at most. The largest headers in use have some million bytes.
const MAX_HEADER: u64 = 100_000_000;
/// The name in the header that is no tensor's.
const METADATA: &str = "__metadata__";

/// The types by the names the format has for them.
const DTYPES: &[(&str, DType)] = &[
    ("BOOL", DType::Bool),
    ("U8", DType::U8),
    ("U16", DType::U16),
    ("U32", DType::U32),
    ("U64", DType::U64),
    ("I8", DType::I8),
    ("I16", DType::I16),
    ("I32", DType::I32),
    ("I64", DType::I64),
    ("F16", DType::F16),
    ("BF16", DType::Bf16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("C64", DType::Complex64),
];

pub(super) fn header(mut file: impl Read + Seek, path: &Path) -> Result<Header> {
    let failed = |why: std::io::Error| unreadable(path, why);
    let bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    if bytes < PREFIX {
        return Err(invalid(path, format!("the file has {bytes} bytes, which is no safetensors file; get it again")));
    }
    let mut length = [0; PREFIX as usize];
    fill(&mut file, &mut length, path)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER {
        let message = format!(
            "the header is said to have {length} bytes, at most {MAX_HEADER} are taken: this is no safetensors file, or it is damaged"
        );
        return Err(invalid(path, message));
    }
    if length > bytes - PREFIX {
        let message = format!(
            "the header is said to have {length} bytes, the file ends at byte {bytes}: it is truncated, or no safetensors file; get it again"
        );
        return Err(invalid(path, message));
    }
    let mut json = vec![0; usize::try_from(length).expect("a hundred million bytes can be addressed")];
    fill(&mut file, &mut json, path)?;
    let entries = entries(&json).map_err(|why| invalid(path, why))?;
    let (tensors, metadata) = read_entries(&entries, PREFIX + length, bytes, path)?;
    Ok(Header { path: path.to_owned(), bytes, tensors, metadata })
}

/// Fills all of `bytes` from where the file is.
fn fill(file: &mut impl Read, bytes: &mut [u8], path: &Path) -> Result<()> {
    file.read_exact(bytes).map_err(|why| match why.kind() {
        // The file shrank while it was read.
        IoErrorKind::UnexpectedEof => invalid(path, "the file ends inside its header: it is truncated; get it again"),
        _ => unreadable(path, why),
    })
}

/// The header's names and what stands under them, each as its text.
struct Entries<'h>(Vec<(String, &'h RawValue)>);

impl<'h> Deserialize<'h> for Entries<'h> {
    fn deserialize<D: Deserializer<'h>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'h> Visitor<'h> for Object {
            type Value = Entries<'h>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'h>>(self, mut map: A) -> Result<Entries<'h>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Takes the header apart. A map would hide the second of two tensors of one name.
fn entries(json: &[u8]) -> Result<Vec<(String, &RawValue)>, String> {
    let text = str::from_utf8(json).map_err(|why| format!("the header is not UTF-8: {why}"))?;
    if !text.starts_with('{') {
        return Err("the header does not begin with `{`: this is no safetensors file, or it is damaged".to_owned());
    }
    let Entries(entries) = serde_json::from_str(text).map_err(|why| format!("the header is not as expected: {why}"))?;
    let mut seen = HashSet::new();
    match entries.iter().find(|(name, _)| !seen.insert(name.as_str())) {
        Some((name, _)) => Err(format!("the header has {name:?} twice")),
        None => Ok(entries),
    }
}

/// A tensor as it is written in the header.
#[derive(Deserialize)]
struct Entry<'h> {
    #[serde(borrow)]
    dtype: std::borrow::Cow<'h, str>,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

type Parts = (Vec<Tensor>, Vec<(String, String)>);

fn read_entries(entries: &[(String, &RawValue)], data: u64, file: u64, path: &Path) -> Result<Parts> {
    let (mut tensors, mut metadata) = (Vec::new(), Vec::new());
    for (name, value) in entries {
        if name == METADATA {
            metadata = read_metadata(value).map_err(|why| invalid(path, why))?;
        } else {
            tensors.push(read_tensor(name, value, data, file, path)?);
        }
    }
    tensors.sort_by_key(|tensor| (tensor.offset, tensor.bytes));
    check_places(&tensors, data, file).map_err(|why| invalid(path, why))?;
    Ok((tensors, metadata))
}

fn read_metadata(value: &RawValue) -> Result<Vec<(String, String)>, String> {
    let wrong = |why: serde_json::Error| format!("`{METADATA}` is not as expected, names with texts are wanted: {why}");
    let Entries(texts) = serde_json::from_str(value.get()).map_err(wrong)?;
    texts.into_iter().map(|(name, text)| Ok((name, serde_json::from_str(text.get()).map_err(wrong)?))).collect()
}

fn read_tensor(name: &str, value: &RawValue, data: u64, file: u64, path: &Path) -> Result<Tensor> {
    let wrong = |why: String| invalid(path, format!("the tensor {name:?} {why}"));
    let Entry { dtype, shape, data_offsets: [begin, end] } =
        serde_json::from_str(value.get()).map_err(|why| wrong(format!("is not described as expected: {why}")))?;
    let Some(&(_, dtype)) = DTYPES.iter().find(|(name, _)| *name == dtype) else {
        let known: Vec<_> = DTYPES.iter().map(|(name, _)| *name).collect();
        let message = format!(
            "{}: the tensor {name:?} is of type {dtype:?}, which is not supported; {} are. Convert the model, with mlx_lm.convert for example",
            path.display(),
            known.join(", ")
        );
        return Err(error(ErrorKind::Unsupported, message));
    };
    let counted = count(&shape, dtype);
    let (shape, bytes) = counted.ok_or_else(|| wrong(format!("has the shape {shape:?}, which is too large")))?;
    if begin > end || end - begin != bytes {
        let message =
            format!("is said to lie in bytes {begin} to {end}, but {shape:?} numbers of type {dtype} take {bytes}");
        return Err(wrong(message));
    }
    if end > file - data {
        let (end, what) = (u128::from(data) + u128::from(end), "it is truncated, or damaged; get it again");
        return Err(wrong(format!("ends at byte {end} of the file, which ends at {file}: {what}")));
    }
    Ok(Tensor { name: name.to_owned(), dtype, shape, offset: data + begin, bytes })
}

/// The sizes, and the bytes of all numbers; `None` where they cannot be counted. MLX counts a size in 32 bits, with a sign.
fn count(shape: &[u64], dtype: DType) -> Option<(Vec<usize>, u64)> {
    let sizes = shape.iter().map(|&size| usize::try_from(i32::try_from(size).ok()?).ok()).collect::<Option<_>>()?;
    let elements = shape.iter().try_fold(1_u64, |elements, &size| elements.checked_mul(size))?;
    let bytes = elements.checked_mul(dtype.bytes() as u64)?;
    Some((sizes, bytes)).filter(|_| isize::try_from(bytes).is_ok())
}

/// The format wants every byte to belong to one tensor. `tensors` are in the order in which they lie.
fn check_places(tensors: &[Tensor], data: u64, file: u64) -> Result<(), String> {
    let mut next = data;
    let mut before = "the header";
    for tensor in tensors {
        let Tensor { name, offset, bytes, .. } = tensor;
        if *offset < next {
            return Err(format!("the tensors {before:?} and {name:?} lie over each other, at byte {offset}"));
        }
        if *offset > next {
            return Err(format!("bytes {next} to {offset}, before the tensor {name:?}, belong to no tensor"));
        }
        next = offset + bytes;
        before = name;
    }
    if next < file {
        return Err(format!("the last tensor ends at byte {next}, the file at {file}: what is behind belongs to none"));
    }
    Ok(())
}

fn invalid(path: &Path, message: impl AsRef<str>) -> Error {
    error(ErrorKind::InvalidModel, format!("{}: {}", path.display(), message.as_ref()))
}
