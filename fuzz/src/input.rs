//! Inputs as a file that shrank or was padded, and as a list of parts.

use std::io::{Cursor, Read, Result, Seek, SeekFrom};

/// Bytes with zeros behind them, as a file: so that a header can describe tensors which the input need not hold.
pub struct Padded<'b> {
    bytes: Cursor<&'b [u8]>,
    len: u64,
}

impl<'b> Padded<'b> {
    /// As many zeros as the last byte says: none, or a power of two below 1 MiB.
    pub fn new(input: &'b [u8]) -> Self {
        let (&last, bytes) = input.split_last().unwrap_or((&0, input));
        let zeros = match last % 21 {
            0 => 0,
            power => 1 << (power - 1),
        };
        Self { len: bytes.len() as u64 + zeros, bytes: Cursor::new(bytes) }
    }

    /// How long the file is.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Read for Padded<'_> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let read = self.bytes.read(out)?;
        if read > 0 {
            return Ok(read);
        }
        let left = self.len - self.bytes.position();
        let zeros = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        out[..zeros].fill(0);
        self.bytes.set_position(self.bytes.position() + zeros as u64);
        Ok(zeros)
    }
}

impl Seek for Padded<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        match to {
            SeekFrom::End(offset) => self.bytes.seek(SeekFrom::Start(self.len.saturating_add_signed(offset))),
            other => self.bytes.seek(other),
        }
    }
}

/// The texts of an input, separated by a byte that is in no UTF-8. What else is none becomes U+FFFD.
pub fn texts(input: &[u8]) -> impl Iterator<Item = String> {
    input.split(|&byte| byte == 0xff).map(|part| String::from_utf8_lossy(part).into_owned())
}

/// Bytes taken off an input one after the other, zeros once it is used up.
pub struct Bytes<'b>(pub &'b [u8]);

impl<'b> Bytes<'b> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// The next bytes, `most` if there are as many.
    pub fn take(&mut self, most: usize) -> &'b [u8] {
        self.0.split_off(..most.min(self.0.len())).unwrap_or_default()
    }
}
