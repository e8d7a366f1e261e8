use super::{CHUNK, DESCRIPTION, Header, MAGIC, PRELUDE, VERSION, WRITE_STEP, checksum, chunk_sum};
use crate::{Error, ErrorKind, Result};
use crc_fast::Digest;
use std::{
    fmt,
    io::{self, Write},
};

/// Writes a saved state: the header at once, then the payload piece by piece. Nothing is kept or copied.
pub struct Writer<'w> {
    to: &'w mut dyn Write,
    /// Of the present chunk.
    sum: Digest,
    /// The checksum of the description.
    description: u64,
    /// Chunks that are complete.
    chunks: u64,
    /// Bytes the present chunk still takes.
    room: usize,
    /// Bytes of the payload to come.
    left: u64,
}

impl<'w> Writer<'w> {
    /// Writes the header.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`InvalidInput`](ErrorKind::InvalidInput) for a description of more than 64 KiB or 2^32 tokens.
    pub fn new(to: &'w mut dyn Write, header: &Header) -> Result<Self> {
        let mut body = header.describe();
        let described = body.len();
        let (Ok(tokens), true) = (u32::try_from(header.tokens.len()), described <= DESCRIPTION) else {
            let message = format!("{} tokens and {described} bytes to describe them are too many", header.tokens.len());
            return Err(Error::invalid_input(message));
        };
        let mut prelude = Vec::with_capacity(PRELUDE);
        prelude.extend(MAGIC);
        prelude.extend(VERSION.to_le_bytes());
        prelude.extend((described as u32).to_le_bytes());
        prelude.extend(tokens.to_le_bytes());
        prelude.extend(header.payload.to_le_bytes());
        let sum = checksum(0, &prelude);
        prelude.extend(sum.to_le_bytes());
        body.extend(header.tokens.iter().flat_map(|token| token.0.to_le_bytes()));
        let description = checksum(sum, &body);
        body.extend(description.to_le_bytes());
        to.write_all(&prelude).and_then(|()| to.write_all(&body)).map_err(not_written)?;
        let sum = chunk_sum(description, 0);
        Ok(Self { to, sum, description, chunks: 0, room: CHUNK, left: header.payload })
    }

    /// Writes the next bytes of the payload.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`Runtime`](ErrorKind::Runtime) for more bytes than the header says.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let rest = self.left.checked_sub(bytes.len() as u64);
        self.left = rest.ok_or_else(|| Error::new(ErrorKind::Runtime, "a state is longer than the runtime said"))?;
        while !bytes.is_empty() {
            let (step, more) = bytes.split_at(bytes.len().min(self.room).min(WRITE_STEP));
            self.sum.update(step);
            self.to.write_all(step).map_err(not_written)?;
            bytes = more;
            self.room -= step.len();
            if self.room == 0 {
                self.end_chunk()?;
            }
        }
        Ok(())
    }

    /// Ends the state, and flushes what it was written to.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`Runtime`](ErrorKind::Runtime) for fewer bytes than the header says.
    pub fn finish(mut self) -> Result<()> {
        if self.left > 0 {
            let message = format!("a state is {} bytes shorter than the runtime said", self.left);
            return Err(Error::new(ErrorKind::Runtime, message));
        }
        if self.room < CHUNK {
            self.end_chunk()?;
        }
        self.to.flush().map_err(not_written)
    }

    fn end_chunk(&mut self) -> Result<()> {
        self.to.write_all(&self.sum.finalize().to_le_bytes()).map_err(not_written)?;
        self.chunks += 1;
        self.room = CHUNK;
        self.sum = chunk_sum(self.description, self.chunks);
        Ok(())
    }
}

fn not_written(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, "the sequence's state could not be written").with_source(error)
}

impl fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("chunks", &self.chunks).field("left", &self.left).finish_non_exhaustive()
    }
}
