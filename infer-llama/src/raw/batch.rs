//! The arrays of a `llama_batch`, made once and filled for each pass.

use infer_sys::llama::bindings::llama_batch;
use std::ptr;

/// Tokens of one pass, with the position and the sequence of each.
///
/// Never more tokens than it was made for, exactly one sequence a token: what the arrays have room for.
pub(crate) struct Batch {
    tokens: Vec<i32>,
    positions: Vec<i32>,
    /// How many sequences a token is in: always one.
    counts: Vec<i32>,
    /// Sequence id → itself: what `sequences` points into. Neither written nor grown after it was made.
    ids: Vec<i32>,
    sequences: Vec<*mut i32>,
    wanted: Vec<i8>,
}

// SAFETY: the pointers in `sequences` point into `ids`, which the same value owns and which moves with it: it is on the heap.
unsafe impl Send for Batch {}

impl Batch {
    /// Room for `tokens` tokens of sequences 0 to `sequences - 1`.
    pub(crate) fn new(tokens: usize, sequences: u32) -> Self {
        Self {
            tokens: Vec::with_capacity(tokens),
            positions: Vec::with_capacity(tokens),
            counts: vec![1; tokens],
            ids: (0..sequences.cast_signed()).collect(),
            sequences: Vec::with_capacity(tokens),
            wanted: Vec::with_capacity(tokens),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
        self.sequences.clear();
        self.wanted.clear();
    }

    /// How many tokens there are.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// How many rows are wanted.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.iter().filter(|&&wanted| wanted != 0).count()
    }

    /// Adds a token. Returns its place in the batch.
    ///
    /// # Panics
    /// When the batch is full or the sequence is not one it was made for.
    pub(crate) fn push(&mut self, token: i32, position: i32, sequence: u32, wanted: bool) -> i32 {
        let place = self.tokens.len();
        assert!(place < self.counts.len(), "the batch was checked against its room");
        assert!((sequence as usize) < self.ids.len(), "the sequence was checked against the slots");
        self.tokens.push(token);
        self.positions.push(position);
        self.sequences.push(self.ids.as_mut_ptr().wrapping_add(sequence as usize));
        self.wanted.push(i8::from(wanted));
        i32::try_from(place).expect("a batch is smaller than 2^31")
    }

    /// The batch as C takes it: valid while `self` is neither changed nor moved. C reads it, and writes to nothing of it.
    pub(super) fn as_c(&mut self) -> llama_batch {
        llama_batch {
            n_tokens: i32::try_from(self.tokens.len()).expect("a batch is smaller than 2^31"),
            token: self.tokens.as_mut_ptr(),
            embd: ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.counts.as_mut_ptr(),
            seq_id: self.sequences.as_mut_ptr(),
            logits: self.wanted.as_mut_ptr(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_one_sequence() {
        let mut batch = Batch::new(3, 2);
        batch.push(7, 0, 1, false);
        let last = batch.push(8, 1, 1, true);
        let c = batch.as_c();
        assert_eq!((last, c.n_tokens), (1, 2));
        // SAFETY: two tokens were pushed, so there are two pointers.
        let second = unsafe { c.seq_id.add(1) };
        // SAFETY: as above, and it was written.
        let sequence = unsafe { *second };
        // SAFETY: it points into the table of ids, which lives.
        assert_eq!(unsafe { *sequence }, 1);
    }

    #[test]
    #[should_panic(expected = "checked against its room")]
    fn a_full_batch_takes_no_more() {
        let mut batch = Batch::new(1, 1);
        batch.push(0, 0, 0, false);
        batch.push(0, 1, 0, false);
    }
}
