//! Where a model's weights are, for whoever reads them without the runtime.

use super::{
    walk::entry,
    wire::{Field, Fields},
};
use crate::DType;
use infer_core::Result;
use std::{
    collections::HashSet,
    io::{Read, Seek},
    ops::Range,
    path::{Component, Path, PathBuf},
};

/// Smaller ones are not worth being looked at, and some are constants that the runtime's optimiser wants to see.
pub(crate) const LEAST: u64 = 4096;

/// A weight of the main graph, which nobody can feed: numbers that are whole bytes, little-endian.
#[derive(Debug, PartialEq)]
pub(crate) struct Weight {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<i64>,
    /// The file beside the model that it lies in; `None` is the model itself.
    pub(crate) file: Option<PathBuf>,
    /// Which bytes of that.
    pub(crate) bytes: Range<u64>,
}

/// The weights of 4 KiB and more of a model, as far as they are understood.
pub(crate) fn weights(model: impl Read + Seek, name: &Path) -> Result<Vec<Weight>> {
    let (mut fields, end) = Fields::new(model, name)?;
    let (mut weights, mut inputs) = (Vec::new(), HashSet::new());
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (7, Field::Bytes { end }) => fields.message(end, |fields| graph(fields, end, &mut weights, &mut inputs))?,
            (_, other) => fields.skip(other)?,
        }
    }
    // What can be fed is no constant.
    weights.retain(|weight: &Weight| !inputs.contains(&weight.name));
    Ok(weights)
}

fn graph<R: Read + Seek>(
    fields: &mut Fields<'_, R>,
    end: u64,
    weights: &mut Vec<Weight>,
    inputs: &mut HashSet<String>,
) -> Result<()> {
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (5, Field::Bytes { end }) => fields.message(end, |fields| {
                weights.extend(tensor(fields, end)?);
                Ok(())
            })?,
            (11, Field::Bytes { end }) => fields.message(end, |fields| {
                inputs.insert(input(fields, end)?);
                Ok(())
            })?,
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(())
}

fn input<R: Read + Seek>(fields: &mut Fields<'_, R>, end: u64) -> Result<String> {
    let mut name = String::new();
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Bytes { end }) => name = fields.text(end)?,
            (_, other) => fields.skip(other)?,
        }
    }
    Ok(name)
}

/// `None` for a tensor of another kind, or one that does not agree with itself, of which the runtime says what is wrong.
fn tensor<R: Read + Seek>(fields: &mut Fields<'_, R>, end: u64) -> Result<Option<Weight>> {
    let (mut name, mut shape, mut dtype, mut raw) = (String::new(), Vec::new(), None, None);
    let (mut is_external, mut entries) = (false, Vec::new());
    while let Some((number, field)) = fields.next(end)? {
        match (number, field) {
            (1, Field::Varint(dimension)) => shape.push(dimension.cast_signed()),
            (1, Field::Bytes { end }) => fields.numbers(end, |dimension| shape.push(dimension.cast_signed()))?,
            (2, Field::Varint(number)) => dtype = dtype_of(number),
            (8, Field::Bytes { end }) => name = fields.text(end)?,
            (9, Field::Bytes { end }) => {
                raw = Some(fields.position()..end);
                fields.skip(field)?;
            }
            (13, Field::Bytes { end }) => {
                let (mut key, mut value) = (String::new(), String::new());
                fields.message(end, |fields| entry(fields, end, &mut key, &mut value))?;
                entries.push((key, value));
            }
            (14, Field::Varint(location)) => is_external = location == 1,
            (_, other) => fields.skip(other)?,
        }
    }
    let weight = || {
        let dtype = dtype?;
        let elements =
            shape.iter().try_fold(1, |elements: usize, &one| elements.checked_mul(usize::try_from(one).ok()?));
        let size = dtype.bytes(elements?)? as u64;
        let (file, bytes) = if is_external {
            let (file, offset) = place(&entries, size)?;
            (Some(file), offset..offset.checked_add(size)?)
        } else {
            (None, raw?)
        };
        let is_whole = bytes.end - bytes.start == size;
        (is_whole && size >= LEAST).then_some(Weight { name, dtype, shape, file, bytes })
    };
    Ok(weight())
}

/// The file and the first byte, of a file that is named below the model's folder and is said to have as many bytes as it should.
fn place(entries: &[(String, String)], size: u64) -> Option<(PathBuf, u64)> {
    let value = |wanted: &str| entries.iter().rfind(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
    let number = |wanted: &str, default: u64| value(wanted).map_or(Some(default), |value| value.parse().ok());
    let file = Path::new(value("location")?);
    let is_below = file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let (offset, length) = (number("offset", 0)?, number("length", size)?);
    (is_below && length == size).then(|| (file.to_owned(), offset))
}

/// Numbers whose elements are whole bytes, any of which is one.
fn dtype_of(number: u64) -> Option<DType> {
    Some(match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        16 => DType::Bf16,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn number(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn bytes_field(at: u64, bytes: &[u8]) -> Vec<u8> {
        [number(at << 3 | 2), number(bytes.len() as u64), bytes.to_vec()].concat()
    }

    fn number_field(at: u64, value: u64) -> Vec<u8> {
        [number(at << 3), number(value)].concat()
    }

    /// The head of a tensor of 32 × 64 f32.
    fn head(name: &str) -> Vec<u8> {
        [number_field(1, 32), number_field(1, 64), number_field(2, 1), bytes_field(8, name.as_bytes())].concat()
    }

    fn external(name: &str, entries: &[(&str, &str)]) -> Vec<u8> {
        let mut tensor = head(name);
        for (key, value) in entries {
            let entry = [bytes_field(1, key.as_bytes()), bytes_field(2, value.as_bytes())].concat();
            tensor.extend(bytes_field(13, &entry));
        }
        tensor.extend(number_field(14, 1));
        tensor
    }

    fn model(tensors: &[Vec<u8>], input: &str) -> Vec<u8> {
        let mut graph = bytes_field(2, b"graph");
        graph.extend(bytes_field(11, &bytes_field(1, input.as_bytes())));
        for tensor in tensors {
            graph.extend(bytes_field(5, tensor));
        }
        [number_field(1, 10), bytes_field(7, &graph)].concat()
    }

    fn of(model: &[u8]) -> Result<Vec<Weight>> {
        weights(Cursor::new(model), Path::new("test.onnx"))
    }

    #[test]
    fn finds_weights_in_the_model_and_beside_it() {
        let raw: Vec<u8> = (0..32 * 64 * 4).map(|byte| (byte % 251) as u8).collect();
        let here = [head("here"), bytes_field(9, &raw)].concat();
        let packed =
            [bytes_field(1, &[64, 64]), number_field(2, 3), bytes_field(8, b"packed"), bytes_field(9, &raw[..4096])];
        let beside = external("beside", &[("location", "data/w.bin"), ("offset", "128"), ("length", "8192")]);
        let model = model(&[here, packed.concat(), beside], "x");
        let found = of(&model).unwrap();
        let what: Vec<_> = found.iter().map(|weight| (weight.name.as_str(), weight.dtype, &weight.shape[..])).collect();
        assert_eq!(
            what,
            [("here", DType::F32, &[32, 64][..]), ("packed", DType::I8, &[64, 64]), ("beside", DType::F32, &[32, 64])]
        );
        let at = |range: &Range<u64>| &model[range.start as usize..range.end as usize];
        assert_eq!((&found[0].file, at(&found[0].bytes)), (&None, &raw[..]));
        assert_eq!((&found[1].file, at(&found[1].bytes)), (&None, &raw[..4096]));
        assert_eq!((found[2].file.as_deref(), &found[2].bytes), (Some(Path::new("data/w.bin")), &(128..128 + 8192)));
    }

    #[test]
    fn leaves_out_what_is_no_weight_to_be_read_so() {
        let raw = vec![7; 32 * 64 * 4];
        let fed = [head("fed"), bytes_field(9, &raw)].concat();
        let short = [head("short"), bytes_field(9, &raw[1..])].concat();
        let small =
            [number_field(1, 8), number_field(2, 1), bytes_field(8, b"small"), bytes_field(9, &raw[..32])].concat();
        let texts = [number_field(1, 2048), number_field(2, 8), bytes_field(8, b"texts")].concat();
        let negative =
            [number_field(1, u64::MAX), number_field(2, 1), bytes_field(8, b"negative"), bytes_field(9, &raw)].concat();
        let outside = external("outside", &[("location", "../w.bin")]);
        let elsewhere = external("elsewhere", &[("location", "/w.bin")]);
        let nowhere = external("nowhere", &[("offset", "0")]);
        let other = external("other", &[("location", "w.bin"), ("length", "8191")]);
        let far = external("far", &[("location", "w.bin"), ("offset", "18446744073709551615")]);
        let good = external("good", &[("location", "w.bin")]);
        let model = model(&[fed, short, small, texts, negative, outside, elsewhere, nowhere, other, far, good], "fed");
        let found = of(&model).unwrap();
        assert_eq!(found.iter().map(|weight| weight.name.as_str()).collect::<Vec<_>>(), ["good"]);
    }

    #[test]
    fn a_model_that_ends_too_early_is_an_error() {
        let good = model(&[external("good", &[("location", "w.bin")])], "x");
        for length in 3..good.len() {
            assert!(of(&good[..length]).is_err(), "the first {length} bytes");
        }
    }
}
