//! NumPy's `.npy` files: one array each, behind a header that is a Python literal.
//!
//! Written here and not taken from a crate: `npyz` reads an array number by number into a type that the program names, and brings a
//! grammar of all Python literals; what is needed is the bytes of an array whose type the file names. It uses nothing but the standard
//! library, so that it can be fuzzed by itself.

// Found from the fuzzer's crate too, for which this file is a module by its path.
#[path = "npy/header.rs"]
mod header;

use self::header::Header;
use std::io::{Read, Write};

/// Bytes of a header at most. NumPy's own have about a hundred.
const LONGEST_HEADER: usize = 1 << 16;
/// Dimensions at most: as many as NumPy's arrays can have.
const MOST_DIMENSIONS: usize = 64;
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes that an allocation of few takes.
const ALLOCATION: usize = 32;
/// NumPy begins the numbers at a multiple of this.
const ALIGNMENT: usize = 64;

/// What an array is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// NumPy's letter for numbers, and how many bytes one has: `f`, `i`, `u`, `c`, or `b` for truth values.
    Number(u8, usize),
    /// Bytes that NumPy has no type for, so many each.
    Raw(usize),
    /// Text of up to so many code points, padded with zeros.
    Text(usize),
    /// Text of up to so many bytes, padded with zeros.
    Bytes(usize),
}

/// An array: C order, and this machine's byte order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Array {
    /// What it is of.
    pub(crate) kind: Kind,
    /// Its dimensions; none for a single number.
    pub(crate) shape: Vec<usize>,
    /// Its elements.
    pub(crate) bytes: Vec<u8>,
}

impl Kind {
    /// Bytes of one element. `None` where they are more than can be counted.
    fn size(self) -> Option<usize> {
        match self {
            Self::Number(_, size) | Self::Raw(size) | Self::Bytes(size) => Some(size),
            Self::Text(points) => points.checked_mul(4),
        }
    }

    /// Bytes of the tensor that is made of so many elements, in so many bytes, at most.
    fn made_of(self, count: usize, len: usize) -> u64 {
        let each = match self {
            Self::Number(..) | Self::Raw(_) => 0,
            // A text, and where it lies.
            Self::Text(_) | Self::Bytes(_) => 2 * size_of::<String>() + ALLOCATION,
        };
        (len as u64).saturating_add((count as u64).saturating_mul(each as u64))
    }

    /// Bytes that are turned round where the file has the other byte order.
    fn unit(self) -> usize {
        match self {
            // Two numbers each.
            Self::Number(b'c', size) => size / 2,
            Self::Number(_, size) => size,
            Self::Raw(_) | Self::Bytes(_) => 1,
            Self::Text(_) => 4,
        }
    }

    /// As NumPy writes it, with this machine's byte order.
    fn descr(self) -> String {
        let order = if cfg!(target_endian = "little") { '<' } else { '>' };
        match self {
            Self::Number(letter, 1) => format!("|{}1", char::from(letter)),
            Self::Number(letter, size) => format!("{order}{}{size}", char::from(letter)),
            Self::Raw(size) => format!("|V{size}"),
            Self::Text(points) => format!("{order}U{points}"),
            Self::Bytes(size) => format!("|S{size}"),
        }
    }
}

impl Array {
    /// Reads an array, to the end of what there is to read. `room` is how many bytes of memory there are for it and for what is made of it.
    ///
    /// # Errors
    /// What is wrong with it, in words that go on after the file's name.
    pub(crate) fn read(source: &mut impl Read, room: u64) -> Result<Self, String> {
        let header = Header::read(source)?;
        let Header { kind, shape, .. } = &header;
        let count = shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length));
        let len = count.zip(kind.size()).and_then(|(count, size)| count.checked_mul(size));
        let Some(len) = len.filter(|&len| len < usize::MAX >> 1) else {
            return Err(format!("is said to have the shape {shape:?}, more than any memory holds"));
        };
        // A short file can be said to hold much, and an archive of little holds much indeed: allocations that fail end a program.
        let need = (len as u64).saturating_add(kind.made_of(count.unwrap_or_default(), len));
        if need > room {
            return Err(format!(
                "has the shape {shape:?}, which takes {need} bytes of memory, and {room} are to be had"
            ));
        }
        let mut bytes = Vec::new();
        // No more at a time than is there: a header may promise anything.
        source.by_ref().take(len as u64).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
        if bytes.len() < len {
            return Err(format!(
                "ends after {} of the {len} bytes that the shape {shape:?} takes; it is truncated",
                bytes.len()
            ));
        }
        if source.read(&mut [0]).map_err(|error| format!("cannot be read: {error}"))? > 0 {
            return Err(format!("goes on after the {len} bytes that the shape {shape:?} takes"));
        }
        if header.is_swapped && kind.unit() > 1 {
            bytes.chunks_exact_mut(kind.unit()).for_each(<[u8]>::reverse);
        }
        let array = Self { kind: *kind, shape: shape.clone(), bytes };
        // Of nothing every order is the same, and its dimensions can be anything.
        Ok(if header.is_fortran && len > 0 { array.transposed() } else { array })
    }

    /// From Fortran's order, in which the first index runs fastest.
    fn transposed(self) -> Self {
        let Self { kind, shape, bytes } = self;
        let size = kind.size().unwrap_or_default();
        let mut ordered = Vec::with_capacity(bytes.len());
        // How far apart neighbours lie along each dimension.
        let mut strides = vec![size; shape.len()];
        for dimension in 1..shape.len() {
            strides[dimension] = strides[dimension - 1] * shape[dimension - 1];
        }
        let mut index = vec![0; shape.len()];
        while ordered.len() < bytes.len() {
            let at: usize = index.iter().zip(&strides).map(|(index, stride)| index * stride).sum();
            ordered.extend_from_slice(&bytes[at..at + size]);
            for (index, &length) in index.iter_mut().zip(&shape).rev() {
                *index += 1;
                if *index < length {
                    break;
                }
                *index = 0;
            }
        }
        Self { kind, shape, bytes: ordered }
    }

    /// The texts of an array of text; `None` where it is another one, or one of them is not Unicode, by its number.
    ///
    /// # Errors
    /// The number of the first that is not Unicode.
    pub(crate) fn texts(&self) -> Option<Result<Vec<String>, usize>> {
        let decode: fn(&[u8]) -> Option<String> = match self.kind {
            Kind::Text(_) => |bytes| {
                let (points, _) = bytes.as_chunks::<4>();
                points.iter().map(|&point| char::from_u32(u32::from_ne_bytes(point))).collect()
            },
            Kind::Bytes(_) => |bytes| str::from_utf8(bytes).ok().map(str::to_owned),
            Kind::Number(..) | Kind::Raw(_) => return None,
        };
        let count = self.shape.iter().product();
        let size = self.kind.size().unwrap_or_default();
        let text = |number: usize| {
            let text = decode(&self.bytes[number * size..(number + 1) * size]).ok_or(number)?;
            Ok(text.trim_end_matches('\0').to_owned())
        };
        Some((0..count).map(text).collect())
    }

    /// An array of text.
    ///
    /// # Errors
    /// The number of a text that ends with U+0000, which NumPy cannot tell from its padding.
    pub(crate) fn of_texts(shape: &[usize], texts: &[&str]) -> Result<Self, usize> {
        if let Some(number) = texts.iter().position(|text| text.ends_with('\0')) {
            return Err(number);
        }
        // NumPy has no texts of no code points.
        let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or_default().max(1);
        let mut bytes = Vec::with_capacity(texts.len() * longest * 4);
        for text in texts {
            let end = bytes.len() + longest * 4;
            bytes.extend(text.chars().flat_map(|point| u32::from(point).to_ne_bytes()));
            bytes.resize(end, 0);
        }
        Ok(Self { kind: Kind::Text(longest), shape: shape.to_vec(), bytes })
    }

    /// Writes it as NumPy does.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        let lengths: String = self.shape.iter().map(|length| format!("{length}, ")).collect();
        // A tuple of one has a comma at its end, and others need none.
        let shape = match self.shape.len() {
            1 => lengths.trim_end(),
            _ => lengths.trim_end_matches(", "),
        };
        let descr = self.kind.descr();
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
        let before = MAGIC.len() + 4;
        let padding = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - before - header.len() - 1;
        header.extend(std::iter::repeat_n(' ', padding));
        header.push('\n');
        // It has at most 22 bytes a dimension, and graphs have few.
        let length =
            u16::try_from(header.len()).map_err(|_| std::io::Error::other("the array has too many dimensions"))?;
        to.write_all(MAGIC)?;
        to.write_all(&[1, 0])?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(header.as_bytes())?;
        to.write_all(&self.bytes)
    }
}

#[cfg(test)]
#[path = "npy/tests.rs"]
mod tests;
