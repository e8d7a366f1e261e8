//! A saved sequence of the scripted session: in the frame that all backends use, the digest of each position.
//!
//! Digests, since after a shift they are not those that computing the tokens would give.

use crate::{
    Limits, Result, Token,
    state::{Fingerprint, Header, Reader, UsedAdapter, Writer},
};
use std::io::{Read, Write};

const DIGEST: usize = size_of::<u64>();

/// What was saved of a sequence.
pub(super) struct Saved {
    pub(super) adapter: Option<UsedAdapter>,
    /// The token and the digest of each position.
    pub(super) positions: Vec<(Token, u64)>,
}

pub(super) fn write(
    to: &mut dyn Write,
    seed: u64,
    adapter: Option<UsedAdapter>,
    tokens: impl Iterator<Item = Token>,
    digests: impl Iterator<Item = u64>,
) -> Result<()> {
    let mut header = header(seed);
    header.adapter = adapter;
    header.tokens = tokens.collect();
    header.payload = (header.tokens.len() * DIGEST) as u64;
    let mut writer = Writer::new(to, &header)?;
    for digest in digests {
        writer.write(&digest.to_le_bytes())?;
    }
    writer.finish()
}

pub(super) fn read(from: &mut dyn Read, seed: u64, limits: &Limits) -> Result<Saved> {
    let mut reader = Reader::new(from, limits.context)?;
    let saved = reader.header();
    saved.check(&header(seed))?;
    saved.check_tokens(limits.vocab)?;
    let (adapter, tokens) = (saved.adapter.clone(), saved.tokens.clone());
    let mut positions = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut digest = [0; DIGEST];
        reader.read_exact(&mut digest)?;
        positions.push((token, u64::from_le_bytes(digest)));
    }
    reader.finish()?;
    Ok(Saved { adapter, positions })
}

/// Sessions of scripts with another seed are of another model.
fn header(seed: u64) -> Header {
    Header::new("scripted", Fingerprint::of([seed.to_le_bytes()]), "Scripted")
}
