//! A saved sequence: the magic, the model's seed, the number of tokens, the length of the adapter's name (0 for none) and the name, the
//! tokens, and a checksum over all of it.
//! Numbers are little-endian.

use crate::{Error, ErrorKind, Limits, Result, Token, testing::cache::mix};
use std::io::{self, Read, Write};

const MAGIC: [u8; 8] = *b"scripted";
/// Bytes before the adapter's name.
const HEAD: usize = 32;

/// What was saved of a sequence.
pub(super) struct Saved {
    pub(super) adapter: Option<String>,
    pub(super) tokens: Vec<Token>,
}

/// No name is longer.
const MAX_NAME: usize = 4096;

pub(super) fn write(
    to: &mut dyn Write,
    seed: u64,
    adapter: Option<&str>,
    tokens: impl ExactSizeIterator<Item = Token>,
) -> Result<()> {
    let adapter = adapter.unwrap_or_default();
    let mut frame = Vec::from(MAGIC);
    frame.extend(seed.to_le_bytes());
    frame.extend((tokens.len() as u64).to_le_bytes());
    frame.extend((adapter.len() as u64).to_le_bytes());
    frame.extend(adapter.as_bytes());
    frame.extend(tokens.flat_map(|token| token.0.to_le_bytes()));
    frame.extend(checksum(&frame).to_le_bytes());
    to.write_all(&frame)
        .map_err(|error| Error::new(ErrorKind::Io, "the sequence's state could not be written").with_source(error))
}

pub(super) fn read(from: &mut dyn Read, seed: u64, limits: &Limits) -> Result<Saved> {
    let mut frame = Vec::new();
    take(from, &mut frame, HEAD)?;
    if frame[..8] != MAGIC {
        return Err(Error::invalid_input("this is not the state of a sequence of a scripted session"));
    }
    if frame[8..16] != seed.to_le_bytes() {
        return Err(Error::invalid_input("the state is of another model"));
    }
    let count = u64::from_le_bytes(frame[16..24].try_into().expect("8 bytes"));
    let Some(count) = usize::try_from(count).ok().filter(|&count| count <= limits.context) else {
        return Err(Error::invalid_input(format!(
            "the state has {count} positions, more than the context of {}",
            limits.context
        )));
    };
    let name = u64::from_le_bytes(frame[24..HEAD].try_into().expect("8 bytes"));
    let Some(name) = usize::try_from(name).ok().filter(|&length| length <= MAX_NAME) else {
        return Err(Error::invalid_input(format!("the state is damaged: an adapter's name of {name} bytes")));
    };
    take(from, &mut frame, name + count * size_of::<u32>())?;
    let sum = checksum(&frame);
    let adapter = String::from_utf8_lossy(&frame[HEAD..HEAD + name]).into_owned();
    let tokens: Vec<Token> = frame[HEAD + name..]
        .chunks_exact(size_of::<u32>())
        .map(|bytes| Token(u32::from_le_bytes(bytes.try_into().expect("4 bytes"))))
        .collect();
    let end = frame.len();
    take(from, &mut frame, 8)?;
    if frame[end..] != sum.to_le_bytes() || tokens.iter().any(|token| token.index() >= limits.vocab) {
        return Err(Error::invalid_input("the state is damaged: its checksum is wrong"));
    }
    Ok(Saved { adapter: Some(adapter).filter(|name| !name.is_empty()), tokens })
}

/// Appends `count` bytes to `frame`.
fn take(from: &mut dyn Read, frame: &mut Vec<u8>, count: usize) -> Result<()> {
    let start = frame.len();
    frame.resize(start + count, 0);
    from.read_exact(&mut frame[start..]).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::invalid_input("the state is damaged: it ends early"),
        _ => Error::new(ErrorKind::Io, "the sequence's state could not be read").with_source(error),
    })
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, &byte| mix(sum ^ u64::from(byte)))
}
