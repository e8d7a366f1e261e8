//! What is pending in the faked memory, which is nothing, and the state of a sequence piece by piece.

use std::ffi::c_void;

use super::context::{Context, context};
use super::control::Kind;
use super::state::{ENTRY_BYTES, HEAD_BYTES};
use super::support::{Failure, Outcome, finish, put};
use crate::llama::bindings::{infer_llama_error, infer_llama_read_callback, infer_llama_write_callback, llama_context};

/// Bytes that are given at once.
const PIECE: usize = 100;
/// Bytes that are asked for at once: all are looked at.
const NUMBER: usize = 4;

impl Context {
    fn check_tree(&self) -> Outcome {
        if self.shared.script.own_tree && self.shared.script.kind != Kind::Encoder {
            return Ok(());
        }
        Err(Failure::unsupported("this llama.cpp gives states in one piece only"))
    }

    /// Takes a state, which must end at `last`. What is there after a failure is the caller's business.
    fn take_state(&mut self, sequence: usize, last: i32, mut take: impl FnMut(&mut [u8]) -> bool) -> Outcome<u64> {
        let stopped = || Failure::failed("whoever gives the state has stopped");
        let mut take = |bytes: &mut [u8]| bytes.chunks_mut(NUMBER).all(&mut take);
        let mut bytes = vec![0; HEAD_BYTES];
        if !take(&mut bytes) {
            return Err(stopped());
        }
        let count = bytes.last_chunk::<4>().map_or(0, |count| u32::from_le_bytes(*count));
        for _ in 0..count {
            let start = bytes.len();
            bytes.resize(start + ENTRY_BYTES, 0);
            if !take(&mut bytes[start..]) {
                return Err(stopped());
            }
        }
        self.restore(sequence, &bytes)?;
        let end = self.sequences[sequence].iter().map(|entry| entry.pos).max().unwrap_or(-1);
        if end != last {
            return Err(Failure::failed("the state does not end at the position it should"));
        }
        Ok(bytes.len() as u64)
    }
}

pub(super) unsafe extern "C" fn memory_update(pointer: *mut llama_context, error: *mut infer_llama_error) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        context.check_tree()?;
        if context.shared.takes_failing_update() {
            return Err(Failure::failed("positions could not be moved"));
        }
        Ok(())
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn state_seq_write(
    pointer: *mut llama_context,
    seq: i32,
    callback: infer_llama_write_callback,
    user_data: *mut c_void,
    len: *mut u64,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        context.check_tree()?;
        let sequence = context.sequence(seq)?;
        let bytes = context.saved(sequence);
        if let Some(callback) = callback {
            for piece in bytes.chunks(PIECE) {
                // SAFETY: the callback and its data are the caller's, and the bytes live.
                if !unsafe { callback(piece.as_ptr(), piece.len(), user_data) } {
                    return Err(Failure::failed("whoever takes the state has stopped"));
                }
            }
        }
        // SAFETY: `len` is the caller's, valid for writing or NULL.
        unsafe { put(len, bytes.len() as u64) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn state_seq_read(
    pointer: *mut llama_context,
    seq: i32,
    last: i32,
    callback: infer_llama_read_callback,
    user_data: *mut c_void,
    len: *mut u64,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        context.check_tree()?;
        let sequence = context.sequence(seq)?;
        let callback = callback.ok_or_else(|| Failure::argument("callback is NULL"))?;
        let taken = context.take_state(sequence, last, |bytes| {
            // SAFETY: the callback and its data are the caller's, and the bytes are there to be written.
            unsafe { callback(bytes.as_mut_ptr(), bytes.len(), user_data) }
        });
        match taken {
            // SAFETY: `len` is the caller's, valid for writing or NULL.
            Ok(taken) => unsafe { put(len, taken) },
            Err(failure) => {
                context.remove(sequence, -1, -1);
                Err(failure)
            }
        }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
