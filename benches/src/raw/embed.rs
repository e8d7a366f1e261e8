use super::{Context, context::check};
use infer_core::Token;
use infer_sys::llama::bindings::{infer_llama_error, llama_batch};
use std::{ptr, slice};

/// As many sequence ids as a context can have.
static SEQUENCES: [i32; 256] = {
    let mut ids = [0; 256];
    let mut id = 0;
    while id < 256 {
        ids[id] = id as i32;
        id += 1;
    }
    ids
};

impl Context<'_> {
    /// The pooled vectors of texts, divided by their length, one after the other in `out`: what llama.cpp's program
    /// `llama-embedding` does with them, in passes of up to `most` tokens and in the order they come.
    ///
    /// # Panics
    /// When a text is longer than a pass, or the native call fails.
    pub fn embed(&mut self, texts: &[&[Token]], most: usize, out: &mut Vec<f32>) {
        out.clear();
        let (mut tokens, mut sequences) = (0, 0);
        for text in texts {
            if tokens + text.len() > most || sequences == SEQUENCES.len() {
                self.pass(tokens, sequences, out);
                (tokens, sequences) = (0, 0);
            }
            for (position, token) in text.iter().enumerate() {
                self.tokens[tokens] = token.0 as i32;
                self.positions[tokens] = position as i32;
                self.sequences[tokens] = (&raw const SEQUENCES[sequences]).cast_mut();
                self.wanted[tokens] = 1;
                tokens += 1;
            }
            sequences += 1;
        }
        self.pass(tokens, sequences, out);
    }

    fn pass(&mut self, tokens: usize, sequences: usize, out: &mut Vec<f32>) {
        if tokens == 0 {
            return;
        }
        let mut error = infer_llama_error::default();
        // SAFETY: the context is ours, alive, and `&mut` keeps everyone else away.
        let status = unsafe { self.api.memory_clear(self.context, true, &raw mut error) };
        check("memory_clear", status, &error);
        let batch = llama_batch {
            n_tokens: tokens as i32,
            token: self.tokens.as_mut_ptr(),
            embd: ptr::null_mut(),
            pos: self.positions.as_mut_ptr(),
            n_seq_id: self.sequence_counts.as_mut_ptr(),
            seq_id: self.sequences.as_mut_ptr(),
            logits: self.wanted.as_mut_ptr(),
        };
        let mut result = 0;
        // SAFETY: the context is ours and alive; the arrays have at least `n_tokens` entries (they were indexed that far), are not read
        // after the call, and each `seq_id` points to one id, which llama.cpp only reads.
        let status = unsafe { self.api.decode(self.context, &raw const batch, &raw mut result, &raw mut error) };
        check("decode", status, &error);
        assert_eq!(result, 0, "llama_decode");
        for sequence in 0..sequences {
            let (mut row, mut width) = (ptr::null(), 0);
            let (out_row, out_width) = (&raw mut row, &raw mut width);
            // SAFETY: the context is ours and alive, and the outs are valid.
            let status =
                unsafe { self.api.embeddings_seq(self.context, sequence as i32, out_row, out_width, &raw mut error) };
            check("embeddings_seq", status, &error);
            // SAFETY: `row` holds `width` numbers until the next call with this context.
            let row = unsafe { slice::from_raw_parts(row, width) };
            let sum: f64 = row.iter().map(|&number| f64::from(number) * f64::from(number)).sum();
            let scale = if sum > 0.0 { (1.0 / sum.sqrt()) as f32 } else { 0.0 };
            out.extend(row.iter().map(|number| number * scale));
        }
    }
}
