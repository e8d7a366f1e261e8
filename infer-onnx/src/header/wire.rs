//! Protocol buffers, field by field.

use super::{invalid, unreadable};
use infer_core::{Error, Result};
use std::{
    io::{BufReader, Read, Seek, SeekFrom},
    path::Path,
};

/// How deep messages may lie in each other. ONNX Runtime's own reader takes 100.
const DEPTH: usize = 100;
/// What is read of a file at a time.
const BUFFER: usize = 64 << 10;

/// The fields of a file, in its order; what is not asked for is passed over without being read.
pub(super) struct Fields<'n, R: Read> {
    file: BufReader<R>,
    name: &'n Path,
    at: u64,
    depth: usize,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    /// A number.
    Varint(u64),
    /// Bytes, a text or a message, up to this position, which is inside the message it is in.
    Bytes { end: u64 },
    /// A number of fixed size, passed over already.
    Fixed,
}

impl<'n, R: Read + Seek> Fields<'n, R> {
    /// From the beginning; also says where the file ends.
    pub(super) fn new(mut file: R, name: &'n Path) -> Result<(Self, u64)> {
        let len = file.seek(SeekFrom::End(0)).map_err(|why| unreadable(name, why))?;
        file.seek(SeekFrom::Start(0)).map_err(|why| unreadable(name, why))?;
        let most = usize::try_from(len).map_or(BUFFER, |len| len.min(BUFFER));
        Ok((Self { file: BufReader::with_capacity(most, file), name, at: 0, depth: 0 }, len))
    }

    /// The next field of a message that ends there; `None` at its end.
    pub(super) fn next(&mut self, end: u64) -> Result<Option<(u32, Field)>> {
        if self.at >= end {
            return Ok(None);
        }
        let start = self.at;
        let tag = self.varint(end)?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let Some(number) = number else {
            return Err(self.no_model(start, "there is no such field"));
        };
        let field = match tag & 7 {
            0 => Field::Varint(self.varint(end)?),
            1 => self.fixed(8, end)?,
            5 => self.fixed(4, end)?,
            2 => {
                let len = self.varint(end)?;
                Field::Bytes { end: self.after(len, end)? }
            }
            other => return Err(self.no_model(start, &format!("a field cannot be of kind {other}"))),
        };
        Ok(Some((number, field)))
    }

    /// Where the next thing to be read is.
    pub(super) fn position(&self) -> u64 {
        self.at
    }

    /// The numbers of a field that has several, one after the other.
    pub(super) fn numbers(&mut self, end: u64, mut each: impl FnMut(u64)) -> Result<()> {
        while self.at < end {
            each(self.varint(end)?);
        }
        Ok(())
    }

    /// Reads a message inside another one.
    pub(super) fn message(&mut self, end: u64, read: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth >= DEPTH {
            return Err(self.no_model(self.at, &format!("more than {DEPTH} messages lie in each other")));
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        debug_assert!(self.at == end, "a message is read to its end");
        Ok(())
    }

    /// Passes over a field that nobody asked for.
    pub(super) fn skip(&mut self, field: Field) -> Result<()> {
        let Field::Bytes { end } = field else { return Ok(()) };
        // Not past the end of the file, so not more than it can count.
        let step = i64::try_from(end - self.at).map_err(|_| self.no_model(self.at, "it is too long"))?;
        self.file.seek_relative(step).map_err(|why| unreadable(self.name, why))?;
        self.at = end;
        Ok(())
    }

    /// The text of a field; what is not UTF-8 in it is replaced.
    pub(super) fn text(&mut self, end: u64) -> Result<String> {
        let len = usize::try_from(end - self.at).map_err(|_| self.no_model(self.at, "it is too long"))?;
        let mut bytes = vec![0; len];
        self.file.read_exact(&mut bytes).map_err(|why| unreadable(self.name, why))?;
        self.at = end;
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    fn fixed(&mut self, len: u64, end: u64) -> Result<Field> {
        let end = self.after(len, end)?;
        self.skip(Field::Bytes { end })?;
        Ok(Field::Fixed)
    }

    fn varint(&mut self, end: u64) -> Result<u64> {
        let start = self.at;
        let mut number = 0_u64;
        for shift in (0..70).step_by(7) {
            if self.at >= end {
                return Err(self.too_short(start, 1));
            }
            let mut byte = [0];
            self.file.read_exact(&mut byte).map_err(|why| unreadable(self.name, why))?;
            self.at += 1;
            // Of the tenth byte one bit counts, as in the reader of protocol buffers' own.
            number |= u64::from(byte[0] & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte[0] < 0x80 {
                return Ok(number);
            }
        }
        Err(self.no_model(start, "a number has more than ten bytes"))
    }

    /// The position so many bytes on, which must be inside the message.
    fn after(&self, len: u64, end: u64) -> Result<u64> {
        let position = self.at.checked_add(len).filter(|&position| position <= end);
        position.ok_or_else(|| self.too_short(self.at, len))
    }

    fn too_short(&self, at: u64, wanted: u64) -> Error {
        let message =
            format!("it is no ONNX model, or ends too early: {wanted} bytes are wanted at byte {at}, and not there");
        invalid(self.name, message)
    }

    fn no_model(&self, at: u64, why: &str) -> Error {
        invalid(self.name, format!("it is no ONNX model, or damaged: at byte {at}, {why}"))
    }
}
