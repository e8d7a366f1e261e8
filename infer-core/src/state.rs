//! Saved sequences: the frame around a runtime's bytes. For backends.
//!
//! What a runtime writes for a sequence says little about itself, and what a runtime reads back it trusts: llama.cpp takes a
//! state with one flipped byte for good in seven cases of eight. So [`Session::save`](crate::Session::save) puts a frame around
//! it, the same for every backend:
//!
//! | part | bytes |
//! |---|---|
//! | prelude | magic (8), version (4), length of the description (4), number of tokens (4), length of the payload (8), checksum (8) |
//! | description | backend, [`Fingerprint`] and name of the model, shape of the session, name and [`Fingerprint`] of the adapter |
//! | tokens | 4 each |
//! | checksum | 8, of description and tokens |
//! | payload | in chunks of at most 64 KiB, each with its length (4) before and a checksum (8) behind it |
//!
//! Numbers are little-endian. The first two checksums are XXH3 of 64 bits, the second seeded by the first. A chunk's is CRC-64/NVME of the
//! description's checksum, the chunk's number, its length and its bytes: it finds every change of up to 8 bytes in a row, and is computed
//! faster than bytes are copied. So a chunk of another state, or in another place, is as wrong as a damaged one, and memory stays
//! bounded however long a state is.
//!
//! Where chunks end is the writer's business: long pieces of a payload are chunks of their own, so that what is read back into as long a
//! place goes there straight. What a reader interprets is verified before it is handed out ([`Reader::read_exact`]); mere numbers may be
//! handed out before, if nobody looks at them until all was read ([`Reader::read_ahead`]).
//!
//! It protects against damage and mistakes, not against forgery: whoever can write a state can also compute its checksums. A
//! backend must not let the bytes of a forged one do worse than compute nonsense.

mod header;
mod reader;
mod writer;

pub use header::{Fingerprint, Header, UsedAdapter};
pub use reader::Reader;
pub use writer::Writer;

use crate::Error;
use crc_fast::{CrcAlgorithm, Digest};
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"inferseq";
const VERSION: u32 = 1;
/// Bytes before the description, the checksum included.
const PRELUDE: usize = 36;
/// Bytes of a checksum.
const SUM: usize = 8;
/// Bytes of a payload that are verified at once, at most.
const CHUNK: usize = 64 * 1024;
/// Bytes that are summed and written, or read and summed, before more are touched: they stay in a core's innermost cache between the two.
/// What has fewer is gathered into chunks.
const STEP: usize = 4096;
/// Memory is copied in pieces of so many bytes, which need no loop. In longer ones, copying takes up to twice as long where source and
/// destination lie badly to each other.
const PIECE: usize = 256;
/// Bytes a description can have.
const DESCRIPTION: usize = 64 * 1024;

fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// The checksum of chunk `index`, which has `len` bytes, before them.
fn chunk_sum(description: u64, index: u64, len: u32) -> Digest {
    let mut sum = Digest::new(CrcAlgorithm::Crc64Nvme);
    sum.update(&description.to_le_bytes());
    sum.update(&index.to_le_bytes());
    sum.update(&len.to_le_bytes());
    sum
}

/// Bytes of the next step: up to where a page of memory ends, so that steps and pieces begin where cache lines do.
fn step(bytes: &[u8]) -> usize {
    match bytes.as_ptr().align_offset(STEP) {
        0 => STEP,
        rest => rest,
    }
}

fn damaged(what: &str) -> Error {
    Error::invalid_input(format!("the saved state is damaged: {what}"))
}
