//! The faked memory, and the saved state of a sequence.

use super::context::{Context, Entry, context};
use super::control::Kind;
use super::support::{Failure, Outcome, array, fill, finish, put};
use crate::llama::bindings::{infer_llama_error, llama_context};

/// Begins every saved state.
const MAGIC: &[u8; 8] = b"fakestat";
/// Bytes of a position in a saved state: the position and the hash.
pub(super) const ENTRY_BYTES: usize = 12;
/// Bytes before the positions: the magic, and how many there are.
pub(super) const HEAD_BYTES: usize = MAGIC.len() + 4;

impl Context {
    /// Takes the positions that are in the range out of a sequence.
    pub(super) fn remove(&mut self, sequence: usize, p0: i32, p1: i32) {
        if !self.has_memory() {
            return;
        }
        let stream = self.stream(sequence);
        let mut entries = std::mem::take(&mut self.sequences[sequence]);
        entries.retain(|entry| {
            let gone = is_within(entry.pos, p0, p1);
            if gone {
                self.drop_cell(stream, entry.cell);
            }
            !gone
        });
        self.sequences[sequence] = entries;
    }

    /// Whether the range has all of a sequence.
    fn is_whole(&self, sequence: usize, p0: i32, p1: i32) -> bool {
        self.sequences[sequence].iter().all(|entry| is_within(entry.pos, p0, p1))
    }

    fn copy(&mut self, from: usize, to: usize, p0: i32, p1: i32) -> Outcome {
        if from == to {
            return Ok(());
        }
        let (source, target) = (self.stream(from), self.stream(to));
        if source != target && (p0 > 0 || p1 >= 0) {
            return Err(Failure::unsupported("cells of their own are copied for a whole sequence only"));
        }
        if source != target {
            self.remove(to, -1, -1);
        }
        for index in 0..self.sequences[from].len() {
            let mut entry = self.sequences[from][index];
            if !is_within(entry.pos, p0, p1) {
                continue;
            }
            if source == target {
                self.holders[entry.cell as usize] += 1;
            } else {
                entry.cell = self.take_cell(target).ok_or_else(|| Failure::failed("out of cells"))?;
            }
            self.sequences[to].push(entry);
        }
        Ok(())
    }

    pub(super) fn restore(&mut self, sequence: usize, bytes: &[u8]) -> Outcome<usize> {
        let damaged = || Failure::failed("the state could not be restored");
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let count = u32::from_le_bytes(*count) as usize;
        let entries = count.checked_mul(ENTRY_BYTES).and_then(|size| rest.get(..size)).ok_or_else(damaged)?;
        if !self.has_memory() {
            return Ok(MAGIC.len() + 4 + entries.len());
        }
        let stream = self.stream(sequence);
        self.remove(sequence, -1, -1);
        if self.used[stream] as usize + count > self.cells() as usize {
            return Err(damaged());
        }
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            let (Some(pos), Some(hash)) = (entry.first_chunk::<4>(), entry.last_chunk::<8>()) else { break };
            let cell = self.take_cell(stream).ok_or_else(damaged)?;
            let entry = Entry { pos: i32::from_le_bytes(*pos), hash: u64::from_le_bytes(*hash), cell };
            self.sequences[sequence].push(entry);
        }
        Ok(MAGIC.len() + 4 + entries.len())
    }

    pub(super) fn saved(&self, sequence: usize) -> Vec<u8> {
        let entries: &[Entry] = if self.has_memory() { &self.sequences[sequence] } else { &[] };
        let mut bytes = MAGIC.to_vec();
        bytes.extend((entries.len() as u32).to_le_bytes());
        for entry in entries {
            bytes.extend(entry.pos.to_le_bytes());
            bytes.extend(entry.hash.to_le_bytes());
        }
        bytes
    }
}

fn is_within(pos: i32, p0: i32, p1: i32) -> bool {
    pos >= p0.max(0) && (p1 < 0 || pos < p1)
}

pub(super) unsafe extern "C" fn memory_clear(
    pointer: *mut llama_context,
    _data: bool,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.map(|context| {
        for sequence in 0..context.sequences.len() {
            context.remove(sequence, -1, -1);
        }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn memory_seq_rm(
    pointer: *mut llama_context,
    seq: i32,
    p0: i32,
    p1: i32,
    removed: *mut bool,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequences = if seq == -1 {
            0..context.sequences.len()
        } else {
            let sequence = context.sequence(seq)?;
            sequence..sequence + 1
        };
        let can = context.shared.script.kind != Kind::Recurrent
            || sequences.clone().all(|sequence| context.is_whole(sequence, p0, p1));
        if can {
            for sequence in sequences {
                context.remove(sequence, p0, p1);
            }
        }
        // SAFETY: `removed` is the caller's, valid for writing or NULL.
        unsafe { put(removed, can) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn memory_seq_cp(
    pointer: *mut llama_context,
    from: i32,
    to: i32,
    p0: i32,
    p1: i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let (from, to) = (context.sequence(from)?, context.sequence(to)?);
        if context.has_memory() { context.copy(from, to, p0, p1) } else { Ok(()) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn memory_seq_add(
    pointer: *mut llama_context,
    seq: i32,
    p0: i32,
    p1: i32,
    delta: i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        if context.shared.script.kind != Kind::Decoder {
            return Err(Failure::unsupported("the positions of this memory cannot be shifted"));
        }
        for entry in &mut context.sequences[sequence] {
            if is_within(entry.pos, p0, p1) {
                entry.pos = entry.pos.saturating_add(delta);
            }
        }
        Ok(())
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn memory_seq_pos_min(
    pointer: *mut llama_context,
    seq: i32,
    pos: *mut i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        let first = context.sequences[sequence].iter().map(|entry| entry.pos).min();
        // SAFETY: `pos` is the caller's, valid for writing or NULL.
        unsafe { put(pos, first.filter(|_| context.has_memory()).unwrap_or(-1)) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn memory_seq_pos_max(
    pointer: *mut llama_context,
    seq: i32,
    pos: *mut i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        let last = context.sequences[sequence].iter().map(|entry| entry.pos).max();
        // SAFETY: `pos` is the caller's, valid for writing or NULL.
        unsafe { put(pos, last.filter(|_| context.has_memory()).unwrap_or(-1)) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn state_seq_size(
    pointer: *mut llama_context,
    seq: i32,
    _flags: u32,
    size: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        // SAFETY: `size` is the caller's, valid for writing or NULL.
        unsafe { put(size, context.saved(sequence).len()) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn state_seq_get(
    pointer: *mut llama_context,
    seq: i32,
    _flags: u32,
    buf: *mut u8,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill(buf, cap, len, &context.saved(sequence)) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn state_seq_set(
    pointer: *mut llama_context,
    seq: i32,
    _flags: u32,
    buf: *const u8,
    len: usize,
    used: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        // SAFETY: the bytes are the caller's, `len` of them.
        let bytes = unsafe { array(buf, len, "buf") }?;
        let n = context.restore(sequence, bytes)?;
        // SAFETY: `used` is the caller's, valid for writing or NULL.
        unsafe { put(used, n) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
