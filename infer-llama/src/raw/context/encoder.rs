//! A context that turns texts into vectors: between two passes it holds nothing.

use super::{Context, Pass, make::default_params};
use crate::raw::{Batch, Model, call};
use infer_core::{Error, ErrorKind, Pooling, Result};
use infer_sys::llama::bindings::{
    LLAMA_POOLING_TYPE_CLS, LLAMA_POOLING_TYPE_LAST, LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_NONE,
    LLAMA_POOLING_TYPE_RANK, llama_pooling_type,
};
use std::{
    ptr, slice,
    sync::{Arc, atomic::AtomicBool},
};

/// A context with embeddings on.
pub(crate) struct Encoder {
    context: Context,
    /// Numbers in a row.
    width: usize,
    /// Whether a pass goes through the library's encoder: where there is one, and where there are no cells, for which its decoder
    /// would only log that it calls the encoder.
    encodes: bool,
}

/// How an encoder is made. What is not here is as llama.cpp has it.
#[derive(Clone, Copy)]
pub(crate) struct EncoderParams {
    /// Tokens of one pass, over all its texts.
    pub(crate) tokens: u32,
    /// Cells of a model that computes with some.
    pub(crate) cells: u32,
    /// Texts of one pass.
    pub(crate) texts: u32,
    pub(crate) threads: u32,
    pub(crate) pooling: Pooling,
}

impl Encoder {
    /// Makes a context. While it is raised, `stop` ends a pass.
    pub(crate) fn new(model: Arc<Model>, params: EncoderParams, stop: Arc<AtomicBool>) -> Result<Self> {
        let facts = model.facts()?;
        let mut raw = default_params(&model);
        raw.n_ctx = params.cells;
        raw.n_batch = params.tokens;
        // A text that was cut would see only a part of itself.
        raw.n_ubatch = params.tokens;
        raw.n_seq_max = params.texts;
        // One pool of cells: how long the texts of a pass are differs from pass to pass.
        raw.kv_unified = true;
        raw.embeddings = true;
        raw.pooling_type = pooling_type(params.pooling);
        let context = Context::make(model, raw, params.threads, Vec::new(), stop)?;
        let width = if params.pooling == Pooling::Rank { facts.class_outputs } else { facts.width };
        let encodes = facts.has_encoder || !context.shape.has_memory;
        Ok(Self { context, width, encodes })
    }

    /// Numbers in a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Tokens one pass can have.
    pub(crate) fn tokens(&self) -> usize {
        self.context.shape.batch as usize
    }

    /// Runs one pass over what the batch holds, each text from position 0. What was there before is forgotten.
    pub(crate) fn run(&mut self, batch: &mut Batch) -> Result<Pass> {
        if self.context.shape.has_memory {
            self.clear()?;
        }
        if !self.encodes {
            return self.context.pass(batch);
        }
        let model = self.context.model.clone();
        let _shared = model.shared()?;
        let mut result = 0;
        let (api, context, batch) = (self.context.model.door.api, self.context.ptr.as_ptr(), batch.as_c());
        let (batch, out) = (&raw const batch, &raw mut result);
        // SAFETY: the context lives and is this thread's alone; the arrays are as long as `n_tokens` says, and every sequence id
        // points to one; `out` is a valid place.
        call("run a pass", |error| unsafe { api.encode(context, batch, out, error) })?;
        Ok(Pass::of(result))
    }

    /// The pooled row of a text of the last pass.
    pub(crate) fn text(&mut self, text: u32) -> Result<&[f32]> {
        let (mut row, mut len) = (ptr::null(), 0);
        let (api, context) = (self.context.model.door.api, self.context.ptr.as_ptr());
        let (text, out, out_len) = (self.context.sequence(text)?, &raw mut row, &raw mut len);
        call("read an embedding", |error|
            // SAFETY: the context lives and is this thread's alone; both places are valid; a sequence without a row is refused.
            unsafe { api.embeddings_seq(context, text, out, out_len, error) })?;
        self.row(row, len)
    }

    /// The row of a token of the last pass, by its place in the batch.
    pub(crate) fn token(&mut self, place: i32) -> Result<&[f32]> {
        let (mut row, mut len) = (ptr::null(), 0);
        let (api, context) = (self.context.model.door.api, self.context.ptr.as_ptr());
        let (out, out_len) = (&raw mut row, &raw mut len);
        call("read an embedding", |error|
            // SAFETY: the context lives and is this thread's alone; both places are valid; a place without a row is refused.
            unsafe { api.embeddings(context, place, out, out_len, error) })?;
        self.row(row, len)
    }

    /// A row that the door has just given.
    fn row(&mut self, row: *const f32, len: usize) -> Result<&[f32]> {
        if row.is_null() || !row.is_aligned() || len != self.width {
            let message = format!("the library gives rows of {len} numbers where {} are expected", self.width);
            return Err(Error::new(ErrorKind::Runtime, message));
        }
        // SAFETY: the door gave `len` numbers at `row`, which is not NULL. `llama_door.h`: they are valid until the next call with
        // this context that is not one that reads rows, and every call takes `&mut self`, which the result borrows.
        Ok(unsafe { slice::from_raw_parts(row, len) })
    }

    /// Forgets all texts. Their numbers stay where they are, and nothing looks at them.
    fn clear(&mut self) -> Result<()> {
        let (api, context) = (self.context.model.door.api, self.context.ptr.as_ptr());
        // SAFETY: the context lives and is this thread's alone.
        call("clear the memory", |error| unsafe { api.memory_clear(context, false, error) })
    }
}

fn pooling_type(pooling: Pooling) -> llama_pooling_type {
    match pooling {
        Pooling::Mean => LLAMA_POOLING_TYPE_MEAN,
        Pooling::Cls => LLAMA_POOLING_TYPE_CLS,
        Pooling::Last => LLAMA_POOLING_TYPE_LAST,
        Pooling::Rank => LLAMA_POOLING_TYPE_RANK,
        // One vector a token; a way of pooling that is unknown here is refused before.
        _ => LLAMA_POOLING_TYPE_NONE,
    }
}
