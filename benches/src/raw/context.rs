use super::Spy;
use infer_core::Token;
use infer_sys::llama::{
    Api,
    bindings::{ggml_threadpool, infer_llama_error, llama_batch, llama_context},
};
use std::{ffi::CStr, marker::PhantomData, ptr};

/// A context on the table, with one sequence: the arrays of a batch are filled, `llama_decode` is called, the row is read.
#[derive(Debug)]
pub struct Context<'m> {
    pub(super) api: Api,
    pub(super) context: *mut llama_context,
    pool: Option<*mut ggml_threadpool>,
    pub(super) tokens: Vec<i32>,
    pub(super) positions: Vec<i32>,
    pub(super) sequence_counts: Vec<i32>,
    pub(super) sequences: Vec<*mut i32>,
    pub(super) wanted: Vec<i8>,
    len: usize,
    /// The model lives at least as long.
    model: PhantomData<&'m ()>,
}

/// Every token is of this sequence.
static SEQUENCE: i32 = 0;

impl<'m> Context<'m> {
    /// A context like the one that was made last through the spy, on the same model, which `model` keeps alive, and with
    /// threads like its. It cannot be interrupted.
    ///
    /// # Panics
    /// When none was made on this thread, or the native call fails.
    pub fn like_last<M>(spy: Spy, model: &'m M) -> Self {
        let _ = model;
        let (api, mut params) = (spy.real(), spy.context_params());
        params.abort_callback = None;
        params.abort_callback_data = ptr::null_mut();
        let (mut context, mut error) = (ptr::null_mut(), infer_llama_error::default());
        // SAFETY: the model was made by this table and is alive (the caller's promise, kept for `'m`), the parameters are those another
        // context was made with, and both outs are valid.
        let status = unsafe { api.context_new(spy.model(), &raw const params, &raw mut context, &raw mut error) };
        check("context_new", status, &error);
        let pool = spy.pool().map(|(threads, poll)| {
            let mut pool = ptr::null_mut();
            // SAFETY: the numbers are those another pool was made with, and the outs are valid.
            let status = unsafe { api.threadpool_new(threads, poll, &raw mut pool, &raw mut error) };
            check("threadpool_new", status, &error);
            // SAFETY: context and pool are new and ours, and the pool is freed after the context.
            let status = unsafe { api.threadpool_attach(context, pool, ptr::null_mut(), &raw mut error) };
            check("threadpool_attach", status, &error);
            pool
        });
        let most = params.n_batch as usize;
        Self {
            api,
            context,
            pool,
            tokens: vec![0; most],
            positions: vec![0; most],
            sequence_counts: vec![1; most],
            sequences: vec![(&raw const SEQUENCE).cast_mut(); most],
            wanted: vec![0; most],
            len: 0,
            model: PhantomData,
        }
    }

    /// Forgets everything.
    ///
    /// # Panics
    /// When the native call fails.
    pub fn clear(&mut self) {
        let mut error = infer_llama_error::default();
        // SAFETY: the context is ours, alive, and `&mut` keeps everyone else away.
        let status = unsafe { self.api.memory_clear(self.context, false, &raw mut error) };
        check("memory_clear", status, &error);
        self.len = 0;
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends `tokens` in one pass and returns the logits after the last one.
    ///
    /// # Panics
    /// When there are none or too many, or the native call fails.
    pub fn decode(&mut self, tokens: &[Token]) -> &[f32] {
        let last = tokens.len().checked_sub(1).expect("there is a token");
        for (at, &token) in tokens.iter().enumerate() {
            self.tokens[at] = token.0 as i32;
            self.positions[at] = (self.len + at) as i32;
            self.wanted[at] = i8::from(at == last);
        }
        let batch = llama_batch {
            n_tokens: tokens.len() as i32,
            token: self.tokens.as_mut_ptr(),
            embd: ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.sequence_counts.as_mut_ptr(),
            seq_id: self.sequences.as_mut_ptr(),
            logits: self.wanted.as_mut_ptr(),
        };
        let (mut result, mut error) = (0, infer_llama_error::default());
        // SAFETY: the context is ours and alive; the arrays have at least `n_tokens` entries (the loop above indexed them), are not read
        // after the call, and each `seq_id` points to one id, which llama.cpp only reads.
        let status = unsafe { self.api.decode(self.context, &raw const batch, &raw mut result, &raw mut error) };
        check("decode", status, &error);
        assert_eq!(result, 0, "llama_decode");
        self.len += tokens.len();
        let (mut row, mut width) = (ptr::null(), 0);
        // SAFETY: the context is ours and alive, and the outs are valid.
        let status =
            unsafe { self.api.logits(self.context, last as i32, &raw mut row, &raw mut width, &raw mut error) };
        check("logits", status, &error);
        // SAFETY: `row` holds `width` numbers until the next call with this context, which takes the `&mut` this borrows.
        unsafe { std::slice::from_raw_parts(row, width) }
    }

    /// Appends `tokens` in one pass and returns the most probable next one, the first of equals.
    ///
    /// # Panics
    /// As [`decode`](Self::decode).
    pub fn step(&mut self, tokens: &[Token]) -> Token {
        argmax(self.decode(tokens))
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by this table, is freed once, and its model is alive for `'m`.
        unsafe { self.api.context_free(self.context) };
        if let Some(pool) = self.pool {
            // SAFETY: it was made by this table, is freed once, and the only context that used it is gone.
            unsafe { self.api.threadpool_free(pool) }
        }
    }
}

/// The first of the largest numbers, as a C program looks for it.
pub fn argmax(logits: &[f32]) -> Token {
    let mut best = 0;
    for (at, &logit) in logits.iter().enumerate() {
        if logit > logits[best] {
            best = at;
        }
    }
    Token(best as u32)
}

pub(super) fn check(call: &str, status: i32, error: &infer_llama_error) {
    if status != 0 {
        // SAFETY: the door ends the message with a NUL, and so does the default, which is all zeros.
        let message = unsafe { CStr::from_ptr(error.message.as_ptr()) };
        panic!("{call}: status {status}: {}", message.to_string_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equals_is_the_best() {
        assert_eq!(argmax(&[0.0, 2.0, 1.0, 2.0]), Token(1));
    }
}
