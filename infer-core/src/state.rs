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
//! | payload | in chunks of 64 KiB, each with a checksum (8) of its own behind it |
//!
//! Numbers are little-endian. The first two checksums are XXH3 of 64 bits, the second seeded by the first. A chunk's is CRC-64/NVME of the
//! description's checksum, the chunk's number and its bytes: it finds every change of up to 8 bytes in a row, and is computed
//! nearly as fast as bytes are copied. So a chunk of another state, or in another place, is as wrong as a damaged one, and
//! memory stays bounded however long a state is: [`Reader`] hands out nothing that was not verified, a chunk at a time.
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
/// Bytes of a payload that are verified at once: few enough to stay in a core's own cache between that and their copy.
const CHUNK: usize = 64 * 1024;
/// Bytes that are summed and handed on before more are touched: they are in the innermost cache still.
const WRITE_STEP: usize = 2048;
/// Bytes that are taken in and summed before more are. A page is copied in a way that shorter pieces are not: with half of it reading takes
/// twice as long.
const READ_STEP: usize = 4096;
/// What is copied to the beginning of such a piece of a cache is copied faster.
const LINE: usize = 64;
/// Bytes a description can have.
const DESCRIPTION: usize = 64 * 1024;

fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// The checksum of chunk `index`, before its bytes.
fn chunk_sum(description: u64, index: u64) -> Digest {
    let mut sum = Digest::new(CrcAlgorithm::Crc64Nvme);
    sum.update(&description.to_le_bytes());
    sum.update(&index.to_le_bytes());
    sum
}

fn damaged(what: &str) -> Error {
    Error::invalid_input(format!("the saved state is damaged: {what}"))
}
