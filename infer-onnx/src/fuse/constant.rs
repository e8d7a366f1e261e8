//! What is known of tensors that are always the same, as far as patterns ask.

use crate::header::{Content, Parts};
use infer_core::Result;
use std::path::Path;

/// More whole numbers than a shape of attention has are not kept.
const INTEGERS: usize = 4;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    /// A float, with no dimension or one.
    Number(f32),
    /// Floats of one dimension.
    Vector(i64),
    /// Floats of two dimensions.
    Matrix([i64; 2]),
    /// Other floats.
    Floats,
    /// A few whole numbers of 64 bits, of one dimension.
    Integers(Box<[i64]>),
    /// Anything else.
    Other,
}

/// A tensor as a model writes it.
#[derive(Default)]
struct Tensor<'m> {
    name: &'m [u8],
    dtype: u64,
    /// The first two.
    dims: [i64; 2],
    rank: usize,
    raw: Option<&'m [u8]>,
    floats: &'m [u8],
    integers: [i64; INTEGERS],
    /// How many whole numbers there are.
    count: usize,
    /// In how many ways it has its elements, those in files with them.
    ways: usize,
}

impl Constant {
    /// Whether it is of 32-bit floats.
    pub(super) fn is_float(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Vector(_) | Self::Matrix(_) | Self::Floats)
    }

    /// A tensor's name, and what it is.
    pub(super) fn read<'m>(message: &'m [u8], name: &Path) -> Result<(&'m [u8], Self)> {
        let tensor = Tensor::read(message, name)?;
        Ok((tensor.name, tensor.constant()))
    }
}

impl<'m> Tensor<'m> {
    fn read(message: &'m [u8], name: &Path) -> Result<Self> {
        let mut tensor = Self::default();
        let mut parts = Parts::new(message, name)?;
        while let Some(part) = parts.next().transpose()? {
            match (part.number, part.content) {
                (1, content) => parts.integers(content, |dim| {
                    if let Some(place) = tensor.dims.get_mut(tensor.rank) {
                        *place = dim;
                    }
                    tensor.rank += 1;
                })?,
                (2, Content::Varint(dtype)) => tensor.dtype = dtype,
                (4, content) => {
                    tensor.floats = content.floats();
                    tensor.ways += 1;
                }
                (7, content) => {
                    // Not packed, each is a field.
                    tensor.ways += usize::from(tensor.count == 0);
                    parts.integers(content, |number| {
                        if let Some(place) = tensor.integers.get_mut(tensor.count) {
                            *place = number;
                        }
                        tensor.count += 1;
                    })?;
                }
                (8, Content::Bytes(text)) => tensor.name = text,
                (9, Content::Bytes(bytes)) => {
                    tensor.raw = Some(bytes);
                    tensor.ways += 1;
                }
                // A part of a tensor, and elements of other types, or in a file.
                (3 | 5 | 6 | 10 | 11 | 13, _) => tensor.ways += 1,
                _ => {}
            }
        }
        Ok(tensor)
    }

    fn constant(&self) -> Constant {
        match (self.dtype, self.rank) {
            (1, 0 | 1) => match (self.number(), self.rank) {
                (Some(number), _) => Constant::Number(number),
                (None, 1) => Constant::Vector(self.dims[0]),
                (None, _) => Constant::Floats,
            },
            (1, 2) => Constant::Matrix(self.dims),
            (1, _) => Constant::Floats,
            (7, 1) => self.integers().map_or(Constant::Other, Constant::Integers),
            _ => Constant::Other,
        }
    }

    fn number(&self) -> Option<f32> {
        let bytes = self.raw.unwrap_or(self.floats);
        let is_one = self.rank == 0 || self.dims[0] == 1;
        if is_one && self.ways == 1 { bytes.try_into().ok().map(f32::from_le_bytes) } else { None }
    }

    fn integers(&self) -> Option<Box<[i64]>> {
        let count = usize::try_from(self.dims[0]).ok().filter(|&count| count <= INTEGERS && self.ways == 1)?;
        let Some(raw) = self.raw else {
            return (self.count == count).then(|| self.integers[..count].into());
        };
        let (numbers, rest) = raw.as_chunks::<8>();
        let is_whole = rest.is_empty() && numbers.len() == count;
        is_whole.then(|| numbers.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect())
    }
}
