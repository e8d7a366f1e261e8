use super::{
    CHUNK, DESCRIPTION, Header, MAGIC, PIECE, PRELUDE, STEP, SUM, VERSION, checksum, chunk_sum, damaged, step,
};
use crate::{Error, ErrorKind, Result, Token};
use crc_fast::Digest;
use std::{
    array, fmt,
    io::{self, IoSliceMut, Read},
    mem,
};

/// Reads a saved state: the header at once, then the payload piece by piece. It holds one chunk of the payload at most, and reads
/// nothing that follows the state.
pub struct Reader<'r> {
    from: &'r mut dyn Read,
    header: Header,
    /// The checksum of the description.
    description: u64,
    /// Chunks that were verified.
    chunks: u64,
    /// The checksum, so far, of the chunk that is being handed out before it is verified.
    sum: Digest,
    /// Bytes of that chunk that were not read yet. None: there is no such chunk.
    ahead: usize,
    /// What is verified, and from where on it was not handed out yet.
    buffer: Vec<u8>,
    at: usize,
    /// Bytes of the payload in chunks that were not begun.
    left: u64,
    /// Whether several slices are filled in at once, as far as is known.
    vectored: bool,
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
        let sum = chunk_sum(description, 0, 0);
        let (buffer, at) = (Vec::new(), 0);
        Ok(Self { from, header, description, chunks: 0, sum, ahead: 0, buffer, at, left: payload, vectored: true })
    }

    /// What was saved.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Fills `into` with the next bytes of the payload, which are verified. After an error there is anything in it.
    ///
    /// # Errors
    /// [`Io`](ErrorKind::Io); [`InvalidInput`](ErrorKind::InvalidInput) for a state that is damaged, or shorter than what is
    /// asked of it.
    pub fn read_exact(&mut self, mut into: &mut [u8]) -> Result<()> {
        loop {
            into = self.hand_out(into);
            if into.is_empty() {
                return Ok(());
            }
            self.buffer_chunk()?;
        }
    }

    /// As [`read_exact`](Self::read_exact), for bytes that nobody looks at before all of the state was read: they may be handed out before
    /// they are verified, and are by the time the next `read_exact`, or [`finish`](Self::finish), has succeeded. If any call fails,
    /// they are to be thrown away. Most of them are copied once, straight into their place.
    ///
    /// # Errors
    /// Those of [`read_exact`](Self::read_exact).
    pub fn read_ahead(&mut self, into: &mut [u8]) -> Result<()> {
        let mut into = self.hand_out(into);
        while !into.is_empty() {
            self.begin_chunk()?;
            let (now, later) = into.split_at_mut(into.len().min(self.ahead));
            self.fetch(now)?;
            into = later;
        }
        Ok(())
    }

    /// Ends the state: all of it was handed out. What follows it is another's.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) where something is left.
    pub fn finish(self) -> Result<()> {
        if self.at < self.buffer.len() || self.ahead > 0 || self.left > 0 {
            return Err(damaged("it is longer than what it describes"));
        }
        Ok(())
    }

    /// Hands out what is verified. What is left of `into`.
    fn hand_out<'i>(&mut self, into: &'i mut [u8]) -> &'i mut [u8] {
        let verified = &self.buffer[self.at..];
        let (now, later) = into.split_at_mut(into.len().min(verified.len()));
        now.copy_from_slice(&verified[..now.len()]);
        self.at += now.len();
        later
    }

    /// Verifies the rest of the present chunk, or all of the next one, and keeps it.
    fn buffer_chunk(&mut self) -> Result<()> {
        self.begin_chunk()?;
        let mut buffer = mem::take(&mut self.buffer);
        self.at = 0;
        buffer.resize(self.ahead, 0);
        self.fetch(&mut buffer)?;
        self.buffer = buffer;
        Ok(())
    }

    /// Goes on to the next chunk where there is none.
    fn begin_chunk(&mut self) -> Result<()> {
        if self.ahead > 0 {
            return Ok(());
        }
        if self.left == 0 {
            return Err(damaged("it is shorter than what it describes"));
        }
        let mut len = [0; size_of::<u32>()];
        fill(self.from, &mut len)?;
        let len = u32::from_le_bytes(len);
        match self.left.checked_sub(len.into()) {
            Some(left) if (1..=CHUNK as u32).contains(&len) => self.left = left,
            _ => return Err(damaged(&format!("the length of chunk {} is wrong", self.chunks + 1))),
        }
        self.sum = chunk_sum(self.description, self.chunks, len);
        self.ahead = len as usize;
        Ok(())
    }

    /// Reads as much of the present chunk, and verifies it if that is all.
    fn fetch(&mut self, mut into: &mut [u8]) -> Result<()> {
        self.ahead -= into.len();
        while !into.is_empty() {
            let (step, later) = into.split_at_mut(step(into).min(into.len()));
            self.take_in(step)?;
            self.sum.update(step);
            into = later;
        }
        if self.ahead > 0 {
            return Ok(());
        }
        let mut stated = [0; SUM];
        fill(self.from, &mut stated)?;
        self.chunks += 1;
        if stated != self.sum.finalize().to_le_bytes() {
            return Err(damaged(&format!("the checksum of chunk {} is wrong", self.chunks)));
        }
        Ok(())
    }

    /// Reads what is summed next.
    fn take_in(&mut self, step: &mut [u8]) -> Result<()> {
        let mut done = 0;
        if self.vectored && step.len() > PIECE {
            let count = step.len().div_ceil(PIECE);
            let mut pieces = step.chunks_mut(PIECE);
            let mut slices: [_; STEP / PIECE] = array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
            done = match self.from.read_vectored(&mut slices[..count]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                taken => taken.map_err(not_read)?,
            };
            self.vectored = done != PIECE;
        }
        fill(self.from, &mut step[done..])
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
