//! The fields of a message that is in memory, with what is in them where it lies.

use super::wire::{Field, Fields};
use infer_core::Result;
use std::{io::Cursor, path::Path};

/// The fields of a message, in its order. What follows one that is damaged means nothing.
pub(crate) struct Parts<'m, 'n> {
    message: &'m [u8],
    fields: Fields<'n, Cursor<&'m [u8]>>,
    name: &'n Path,
    end: u64,
}

/// A field.
#[derive(Clone, Copy)]
pub(crate) struct Part<'m> {
    pub(crate) number: u32,
    pub(crate) content: Content<'m>,
    /// Where the content begins, in the message.
    pub(crate) start: usize,
    /// The field with its number.
    pub(crate) whole: &'m [u8],
}

/// What a field holds.
#[derive(Clone, Copy)]
pub(crate) enum Content<'m> {
    Varint(u64),
    /// Bytes, a text, a message or several numbers.
    Bytes(&'m [u8]),
    /// A number of fixed size.
    Fixed(&'m [u8]),
}

impl<'m, 'n> Parts<'m, 'n> {
    /// `name` is what errors call the file.
    pub(crate) fn new(message: &'m [u8], name: &'n Path) -> Result<Self> {
        let (fields, end) = Fields::new(Cursor::new(message), name)?;
        Ok(Self { message, fields, name, end })
    }

    fn part(&mut self) -> Result<Option<Part<'m>>> {
        let first = self.at();
        let Some((number, field)) = self.fields.next(self.end)? else { return Ok(None) };
        let mut start = self.at();
        self.fields.skip(field)?;
        let whole = &self.message[first..self.at()];
        let content = match field {
            Field::Varint(number) => Content::Varint(number),
            Field::Bytes { .. } => Content::Bytes(&self.message[start..self.at()]),
            Field::Fixed => {
                // The kind of the field is in the last bits of its first byte.
                let size = if whole[0] & 7 == 5 { 4 } else { 8 };
                start -= size;
                Content::Fixed(&self.message[start..start + size])
            }
        };
        Ok(Some(Part { number, content, start, whole }))
    }

    fn at(&self) -> usize {
        // It is a position in a slice.
        usize::try_from(self.fields.position()).unwrap_or(usize::MAX)
    }

    /// The numbers of a field that has one, or several one after the other.
    pub(crate) fn integers(&self, content: Content<'m>, mut each: impl FnMut(i64)) -> Result<()> {
        match content {
            Content::Varint(number) => each(number.cast_signed()),
            Content::Bytes(bytes) => {
                let (mut numbers, end) = Fields::new(Cursor::new(bytes), self.name)?;
                numbers.numbers(end, |number| each(number.cast_signed()))?;
            }
            Content::Fixed(_) => {}
        }
        Ok(())
    }
}

impl<'m> Content<'m> {
    /// A number of 32 bits.
    pub(crate) fn float(self) -> Option<f32> {
        let Self::Fixed(bytes) = self else { return None };
        bytes.try_into().ok().map(f32::from_le_bytes)
    }

    /// The bytes of numbers of 32 bits: of one, or of several one after the other.
    pub(crate) fn floats(self) -> &'m [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Fixed(bytes) if bytes.len() == size_of::<f32>() => bytes,
            Self::Varint(_) | Self::Fixed(_) => &[],
        }
    }
}

impl<'m> Iterator for Parts<'m, '_> {
    type Item = Result<Part<'m>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.part().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_model::Message;

    #[test]
    fn tells_what_is_in_a_field_and_where() {
        // The last is a number of 64 bits, which the writer has no word for.
        let message = Message::new().int(1, 300).bytes(2, "text").float(1 << 20, 0.5).into_bytes();
        let message = [&message[..], &[4 << 3 | 1], &1.5_f64.to_le_bytes()].concat();
        let parts: Vec<_> = Parts::new(&message, Path::new("test")).unwrap().map(Result::unwrap).collect();
        let [Content::Varint(300), Content::Bytes(b"text"), float, double] = [0, 1, 2, 3].map(|at| parts[at].content)
        else {
            panic!("other things are found")
        };
        assert_eq!((float.float(), double.float(), double.floats()), (Some(0.5), None, &[][..]));
        assert_eq!([0, 1, 2, 3].map(|at| parts[at].number), [1, 2, 1 << 20, 4]);
        assert_eq!([1, 2, 3].map(|at| parts[at].start), [5, 13, 18]);
        assert_eq!(parts.iter().flat_map(|part| part.whole).copied().collect::<Vec<_>>(), message);
    }

    #[test]
    fn what_ends_too_early_is_an_error() {
        let message = Message::new().int(1, 1).bytes(2, "text").into_bytes();
        let mut parts = Parts::new(&message[..message.len() - 1], Path::new("test")).unwrap();
        assert!(parts.next().unwrap().is_ok());
        assert!(parts.next().unwrap().is_err_and(|error| error.to_string().starts_with("test: ")));
    }
}
