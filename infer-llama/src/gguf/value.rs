//! What a metadata field holds.

use std::fmt;

/// The value of a metadata field, of the very type it has in the file.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    /// Bytes that should be UTF-8 and need not be.
    String(Box<[u8]>),
    Array(Array),
}

/// An array field, in the type of its elements.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Strings),
}

/// Many strings in two allocations: a vocabulary has hundreds of thousands.
#[derive(Clone, Default, PartialEq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// String → where its bytes end; they begin where those of the one before end.
    ends: Vec<u32>,
}

impl Value {
    /// The name of the type, as GGUF's own tools write it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Array(_) => "array",
        }
    }

    /// The number, where it is an integer that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::U64(value) => Some(value),
            Self::I8(value) => value.try_into().ok(),
            Self::I16(value) => value.try_into().ok(),
            Self::I32(value) => value.try_into().ok(),
            Self::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// The text, where it is a string and valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The strings, where it is an array of them.
    #[must_use]
    pub fn as_strings(&self) -> Option<&Strings> {
        match self {
            Self::Array(Array::String(strings)) => Some(strings),
            _ => None,
        }
    }
}

impl Array {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(items) => items.len(),
            Self::I8(items) => items.len(),
            Self::U16(items) => items.len(),
            Self::I16(items) => items.len(),
            Self::U32(items) => items.len(),
            Self::I32(items) => items.len(),
            Self::U64(items) => items.len(),
            Self::I64(items) => items.len(),
            Self::F32(items) => items.len(),
            Self::F64(items) => items.len(),
            Self::Bool(items) => items.len(),
            Self::String(items) => items.len(),
        }
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index` by itself.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<Value> {
        Some(match self {
            Self::U8(items) => Value::U8(*items.get(index)?),
            Self::I8(items) => Value::I8(*items.get(index)?),
            Self::U16(items) => Value::U16(*items.get(index)?),
            Self::I16(items) => Value::I16(*items.get(index)?),
            Self::U32(items) => Value::U32(*items.get(index)?),
            Self::I32(items) => Value::I32(*items.get(index)?),
            Self::U64(items) => Value::U64(*items.get(index)?),
            Self::I64(items) => Value::I64(*items.get(index)?),
            Self::F32(items) => Value::F32(*items.get(index)?),
            Self::F64(items) => Value::F64(*items.get(index)?),
            Self::Bool(items) => Value::Bool(*items.get(index)?),
            Self::String(items) => Value::String(items.get(index)?.into()),
        })
    }
}

impl Strings {
    /// Adds a string. `None` when all together would take 4 GiB.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = u32::try_from(self.bytes.len() + bytes.len()).ok()?;
        self.bytes.extend_from_slice(bytes);
        self.ends.push(end);
        Some(())
    }

    /// How many strings there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of a string; they need not be UTF-8.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start as usize..end as usize])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index).expect("the index is below the length"))
    }
}

/// Strings are shown lossily and cut after 60 characters, arrays after 6 elements: for people.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        match self {
            Self::U8(value) => value.fmt(f),
            Self::I8(value) => value.fmt(f),
            Self::U16(value) => value.fmt(f),
            Self::I16(value) => value.fmt(f),
            Self::U32(value) => value.fmt(f),
            Self::I32(value) => value.fmt(f),
            Self::U64(value) => value.fmt(f),
            Self::I64(value) => value.fmt(f),
            Self::F32(value) => value.fmt(f),
            Self::F64(value) => value.fmt(f),
            Self::Bool(value) => value.fmt(f),
            Self::String(bytes) => {
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(240)]);
                let shown = text.chars().take(60).collect::<String>();
                let more = if shown.len() < bytes.len() { "…" } else { "" };
                write!(f, "{:?}{more}", shown)
            }
            Self::Array(array) => {
                f.write_str("[")?;
                for index in 0..array.len().min(SHOWN) {
                    let gap = if index == 0 { "" } else { ", " };
                    write!(f, "{gap}{}", array.item(index).expect("the index is below the length"))?;
                }
                if array.len() > SHOWN {
                    write!(f, ", … {} in all", array.len())?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.type_name())
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array of {}", self.len())
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings of {}", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_keep_their_bytes_and_their_edges() {
        let mut strings = Strings::default();
        for text in [&b"a"[..], b"", b"\xff\x00b"] {
            strings.push(text).unwrap();
        }
        assert_eq!(strings.iter().collect::<Vec<_>>(), [&b"a"[..], b"", b"\xff\x00b"]);
        assert_eq!((strings.len(), strings.get(3)), (3, None));
    }

    #[test]
    fn a_value_is_short_for_people() {
        let array = Value::Array(Array::I32((0..100).collect()));
        assert_eq!(array.to_string(), "[0, 1, 2, 3, 4, 5, … 100 in all]");
        let long = Value::String("é".repeat(1000).into_bytes().into());
        assert_eq!(long.to_string(), format!("\"{}\"…", "é".repeat(60)));
        assert_eq!(Value::I32(-1).as_u64(), None);
        assert_eq!(Value::I64(7).as_u64(), Some(7));
    }
}
