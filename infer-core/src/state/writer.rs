use super::{CHUNK, DESCRIPTION, Header, MAGIC, PIECE, PRELUDE, STEP, VERSION, checksum, chunk_sum, step};
use crate::{Error, ErrorKind, Result};
use std::{
    array, fmt,
    io::{self, IoSlice, Write},
    mem,
};

/// Writes a saved state: the header at once, then the payload piece by piece. A long piece goes on as it is; short ones are gathered, a
/// chunk of them at most.
pub struct Writer<'w> {
    to: &'w mut dyn Write,
    /// The checksum of the description.
    description: u64,
    /// Chunks that were written.
    chunks: u64,
    /// Short pieces that wait for more: less than a chunk.
    gathered: Vec<u8>,
    /// Bytes of the payload to come.
    left: u64,
    /// Whether several slices are taken at once, as far as is known.
    vectored: bool,
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
        Ok(Self { to, description, chunks: 0, gathered: Vec::new(), left: header.payload, vectored: true })
    }

    /// Writes the next bytes of the payload.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`Runtime`](ErrorKind::Runtime) for more bytes than the header says.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let rest = self.left.checked_sub(bytes.len() as u64);
        self.left = rest.ok_or_else(|| Error::new(ErrorKind::Runtime, "a state is longer than the runtime said"))?;
        let long = bytes.len() >= STEP;
        if long || self.gathered.len() + bytes.len() > CHUNK {
            self.end_gathered()?;
        }
        if !long {
            self.gathered.extend_from_slice(bytes);
            return Ok(());
        }
        bytes.chunks(CHUNK).try_for_each(|chunk| self.chunk(chunk)).map_err(not_written)
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
        self.end_gathered()?;
        self.to.flush().map_err(not_written)
    }

    fn end_gathered(&mut self) -> Result<()> {
        let mut gathered = mem::take(&mut self.gathered);
        if !gathered.is_empty() {
            self.chunk(&gathered).map_err(not_written)?;
        }
        gathered.clear();
        self.gathered = gathered;
        Ok(())
    }

    fn chunk(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let len = bytes.len() as u32;
        let mut sum = chunk_sum(self.description, self.chunks, len);
        self.to.write_all(&len.to_le_bytes())?;
        while !bytes.is_empty() {
            let (step, more) = bytes.split_at(step(bytes).min(bytes.len()));
            sum.update(step);
            self.put(step)?;
            bytes = more;
        }
        self.chunks += 1;
        self.to.write_all(&sum.finalize().to_le_bytes())
    }

    /// Writes what was summed just now.
    fn put(&mut self, step: &[u8]) -> io::Result<()> {
        let mut done = 0;
        if self.vectored && step.len() > PIECE {
            let mut pieces = step.chunks(PIECE);
            let slices: [_; STEP / PIECE] = array::from_fn(|_| IoSlice::new(pieces.next().unwrap_or_default()));
            done = match self.to.write_vectored(&slices[..step.len().div_ceil(PIECE)]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                taken => taken?,
            };
            self.vectored = done != PIECE;
        }
        self.to.write_all(&step[done..])
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
