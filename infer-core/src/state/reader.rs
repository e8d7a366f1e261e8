use super::{CHUNK, DESCRIPTION, Header, LINE, MAGIC, PRELUDE, READ_STEP, SUM, VERSION, checksum, chunk_sum, damaged};
use crate::{Error, ErrorKind, Result, Token};
use std::{
    fmt,
    io::{self, Read},
};

/// Reads a saved state: the header at once, then the payload piece by piece, of which nothing is handed out that was not
/// verified. It holds one chunk of the payload at most, and reads nothing that follows the state.
pub struct Reader<'r> {
    from: &'r mut dyn Read,
    header: Header,
    /// The checksum of the description.
    description: u64,
    /// Chunks that were read.
    chunks: u64,
    /// What was read of a chunk and its checksum, and which part of it is verified and was not handed out yet.
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// Bytes of the payload behind the chunk.
    left: u64,
}

impl<'r> Reader<'r> {
    /// Reads the header of a state with at most `context` tokens.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`InvalidInput`](ErrorKind::InvalidInput) for what is no saved state, one of another version, or a
    /// damaged one; [`ContextFull`](ErrorKind::ContextFull) for one with more tokens.
    pub fn new(from: &'r mut dyn Read, context: usize) -> Result<Self> {
        let mut prelude = [0; PRELUDE];
        fill(from, &mut prelude)?;
        let sum = checksum(0, &prelude[..PRELUDE - SUM]);
        let mut fields = &prelude[..];
        if take(&mut fields) != MAGIC {
            return Err(Error::invalid_input("this is not a saved state"));
        }
        let version = u32::from_le_bytes(take(&mut fields));
        // All versions begin like this, so damage is told from another version by the checksum.
        let described = u32::from_le_bytes(take(&mut fields)) as usize;
        let tokens = u32::from_le_bytes(take(&mut fields)) as usize;
        let payload = u64::from_le_bytes(take(&mut fields));
        if u64::from_le_bytes(take(&mut fields)) != sum {
            return Err(damaged("the checksum of its beginning is wrong"));
        }
        if version != VERSION {
            return Err(Error::invalid_input(format!(
                "the saved state has version {version} of the format, this library reads {VERSION}"
            )));
        }
        if tokens > context {
            let message = format!("the saved state has {tokens} positions, the context of this session {context}");
            return Err(Error::new(ErrorKind::ContextFull, message));
        }
        if described > DESCRIPTION {
            return Err(damaged("its description is too long"));
        }
        let mut body = vec![0; described + tokens * size_of::<u32>() + SUM];
        fill(from, &mut body)?;
        let (body, stated) = body.split_at(body.len() - SUM);
        let description = checksum(sum, body);
        if stated != description.to_le_bytes() {
            return Err(damaged("the checksum of its description is wrong"));
        }
        let (text, tokens) = body.split_at(described);
        let tokens = tokens.as_chunks().0.iter().map(|&token| Token(u32::from_le_bytes(token))).collect();
        let header = Header::parse(text, tokens, payload)?;
        let buffer = vec![0; CHUNK.min(usize::try_from(payload).unwrap_or(CHUNK)) + SUM].into();
        Ok(Self { from, header, description, chunks: 0, buffer, at: 0, end: 0, left: payload })
    }

    /// What was saved.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Fills `into` with the next bytes of the payload. After an error there is anything in it.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`InvalidInput`](ErrorKind::InvalidInput) for a state that is damaged, or shorter than what is
    /// asked of it.
    pub fn read_exact(&mut self, mut into: &mut [u8]) -> Result<()> {
        loop {
            if self.at == self.end && !into.is_empty() {
                into = self.next_chunk(into)?;
            }
            if into.is_empty() {
                return Ok(());
            }
            let count = into.len().min(self.end - self.at);
            let (now, later) = into.split_at_mut(count);
            now.copy_from_slice(&self.buffer[self.at..self.at + count]);
            self.at += count;
            into = later;
        }
    }

    /// Ends the state: all of it was handed out. What follows it is another's.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) where something is left.
    pub fn finish(self) -> Result<()> {
        if self.at < self.end || self.left > 0 {
            return Err(damaged("it is longer than what it describes"));
        }
        Ok(())
    }

    /// Reads the next chunk: straight into `into` what fits there, and into the buffer what does not, so that most bytes are copied
    /// once. What is left of `into`.
    fn next_chunk<'i>(&mut self, into: &'i mut [u8]) -> Result<&'i mut [u8]> {
        let len = usize::try_from(self.left).unwrap_or(CHUNK).min(CHUNK);
        if len == 0 {
            return Err(damaged("it is shorter than what it describes"));
        }
        let (now, later) = into.split_at_mut(into.len().min(len));
        let mut sum = chunk_sum(self.description, self.chunks);
        let (lead, pages) = now.split_at_mut(now.as_ptr().align_offset(LINE).min(now.len()));
        for step in [lead].into_iter().chain(pages.chunks_mut(READ_STEP)) {
            fill(self.from, step)?;
            sum.update(step);
        }
        let rest = &mut self.buffer[..len - now.len() + SUM];
        fill(self.from, rest)?;
        let (rest, stated) = rest.split_at(len - now.len());
        sum.update(rest);
        if stated != sum.finalize().to_le_bytes() {
            let of = self.header.payload.div_ceil(CHUNK as u64);
            return Err(damaged(&format!("the checksum of chunk {} of {of} is wrong", self.chunks + 1)));
        }
        self.chunks += 1;
        self.left -= len as u64;
        (self.at, self.end) = (0, rest.len());
        Ok(later)
    }
}

fn take<const N: usize>(fields: &mut &[u8]) -> [u8; N] {
    let (field, rest) = fields.split_first_chunk().expect("the prelude has all its fields");
    *fields = rest;
    *field
}

fn fill(from: &mut dyn Read, into: &mut [u8]) -> Result<()> {
    from.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it ends early"),
        _ => not_read(error),
    })
}

fn not_read(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, "the sequence's state could not be read").with_source(error)
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("header", &self.header).field("chunks", &self.chunks).finish_non_exhaustive()
    }
}
