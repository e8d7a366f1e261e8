//! The owner of a `llama_context`, with its threads.

mod cells;
mod encoder;
mod hidden;
mod make;

pub(super) use cells::position;
pub(crate) use encoder::{Encoder, EncoderParams};
pub(crate) use make::{ContextParams, KvFormat};

use super::{
    Adapter, Batch, Model, call,
    sampler::{Attached, Sampler},
    text,
};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::llama::{
    Api,
    bindings::{ggml_threadpool, infer_llama_memory, llama_context},
};
use std::{
    ptr::{self, NonNull},
    slice,
    sync::{Arc, atomic::AtomicBool},
};

/// A context: the keys and values of some sequences, and the memory to compute in.
pub(crate) struct Context {
    pub(super) ptr: NonNull<llama_context>,
    /// Without one, llama.cpp starts and ends its threads in every pass.
    pool: Option<NonNull<ggml_threadpool>>,
    rows: Rows,
    shape: Shape,
    /// Polled by the library while it computes: lives as long as `ptr`, which `drop` frees first.
    stop: Arc<AtomicBool>,
    /// Whether passes give hidden states, in place of few rows one of each token; and whether `stop` is looked at. `None` where the
    /// call that says so did not come to its end.
    hidden: Option<bool>,
    polled: Option<bool>,
    /// Whether a pass can be stopped without harm to sequences that are not in it.
    stoppable: bool,
    /// Those that it may have set, all of `model`: freed after the context.
    pub(super) adapters: Vec<Arc<Adapter>>,
    /// Sequence → what is attached to it: freed after the context.
    pub(super) samplers: Vec<Attached>,
    /// Samplers that may be attached still, since a call that would have told did not come to its end.
    pub(super) kept: Vec<Sampler>,
    /// Freed after the context, as `llama_door.h` asks.
    pub(super) model: Arc<Model>,
}

// SAFETY: `llama_door.h`: "A context is used by one thread at a time; it may move between threads". One thread at a time is
// what an owner that is not `Sync` means; its threads belong to the pool and do not care who waits for them. The rows point into
// the context.
unsafe impl Send for Context {}

/// What became of the wishes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Positions over all sequences.
    pub(crate) cells: u32,
    /// Positions a sequence can have.
    pub(crate) cells_per_sequence: u32,
    pub(crate) batch: u32,
    pub(crate) sequences: u32,
    /// Rows that one call of [`Context::decode`] can give.
    pub(crate) outputs: u32,
    /// Whether the library can move positions.
    pub(crate) can_shift: bool,
    /// Whether there are cells at all: an encoder has none.
    pub(crate) has_memory: bool,
    /// Whether a token sees only those before it.
    pub(crate) is_causal: bool,
}

/// Memory of one kind, in bytes.
pub(crate) struct BufferUse {
    pub(crate) name: String,
    pub(crate) is_host: bool,
    pub(crate) model: u64,
    pub(crate) context: u64,
    pub(crate) compute: u64,
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Done,
    /// There are no cells for it. Nothing has changed.
    NoRoom,
    /// Stopped. Some of it may have been stored.
    Stopped,
    /// llama.cpp calls the batch invalid. Nothing has changed.
    Invalid,
    /// llama.cpp failed in the middle of it. Some of it may have been stored.
    Failed(i32),
}

impl Pass {
    /// What a result of `llama_decode` or `llama_encode` says.
    fn of(result: i32) -> Self {
        match result {
            0 => Self::Done,
            1 => Self::NoRoom,
            2 => Self::Stopped,
            -1 => Self::Invalid,
            code => Self::Failed(code),
        }
    }
}

/// Rows of logits inside the context, one after the other.
#[derive(Clone, Copy)]
struct Rows {
    /// Not dangling: where rows are none it is not read.
    start: *const f32,
    width: usize,
    count: usize,
}

impl Rows {
    const NONE: Self = Self { start: ptr::null(), width: 0, count: 0 };
}

impl Context {
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether a pass may begin on this thread, which is refused to who is told what is logged while an adapter is loaded.
    pub(crate) fn may_decode(&self) -> Result<()> {
        self.model.may_share()
    }

    /// The door and the context, for a call that may change what the rows lie in.
    pub(super) fn parts(&mut self) -> (Api, *mut llama_context) {
        self.forget_rows();
        (self.model.door.api, self.ptr.as_ptr())
    }

    /// Runs one pass over what the batch holds, which wants no more rows than there can be.
    pub(crate) fn decode(&mut self, batch: &mut Batch) -> Result<Pass> {
        self.give_hidden(false)?;
        self.poll(self.stoppable)?;
        self.pass(batch)
    }

    /// Runs one pass, with hidden states and polled or not, as the library was told.
    fn pass(&mut self, batch: &mut Batch) -> Result<Pass> {
        if batch.wanted() > self.shape.outputs as usize {
            // llama.cpp asserts.
            let message = format!("{} rows are wanted of a pass that can give {}", batch.wanted(), self.shape.outputs);
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let model = self.model.clone();
        let _shared = model.shared()?;
        let mut result = 0;
        let (api, context) = self.parts();
        let batch = batch.as_c();
        let (batch, out) = (&raw const batch, &raw mut result);
        // SAFETY: the context lives and is this thread's alone; the arrays are as long as `n_tokens` says, and every sequence id
        // points to one; `out` is a valid place.
        call("run a pass", |error| unsafe { api.decode(context, batch, out, error) })?;
        Ok(Pass::of(result))
    }

    /// Finds the logits at these places of the last batch, which are all those that were wanted, in order. Afterwards
    /// [`logits`](Self::logits) has them.
    pub(crate) fn find_logits(&mut self, places: impl Iterator<Item = i32>, vocab: usize) -> Result<()> {
        self.rows = Rows::NONE;
        let mut rows = Rows { start: ptr::null(), width: vocab, count: 0 };
        for place in places {
            let (mut row, mut len) = (ptr::null(), 0);
            let (api, context) = (self.model.door.api, self.ptr.as_ptr());
            let (out, out_len) = (&raw mut row, &raw mut len);
            // SAFETY: the context lives and is this thread's alone; both places are valid; an index without a row is refused.
            call("read the logits", |error| unsafe { api.logits(context, place, out, out_len, error) })?;
            if row.is_null() || !row.is_aligned() || len != vocab {
                let message = format!("the library gives {len} logits for a vocabulary of {vocab}");
                return Err(Error::new(ErrorKind::Runtime, message));
            }
            if rows.count == 0 {
                rows.start = row;
            }
            if row != rows.start.wrapping_add(rows.count * vocab) {
                return Err(Error::new(
                    ErrorKind::Runtime,
                    "the library's rows of logits are not in the order of the batch",
                ));
            }
            rows.count += 1;
        }
        self.rows = rows;
        Ok(())
    }

    /// The rows that were found, one after the other: the library's own memory. Empty after any other `&mut` call.
    pub(crate) fn logits(&self) -> &[f32] {
        let Rows { start, width, count } = self.rows;
        if count == 0 {
            return &[];
        }
        // SAFETY: `find_logits` got `count` rows of `width` numbers from the door and saw that they follow each other without a gap
        // in the one buffer of logits a context has. `llama_door.h`: they are valid until the next call with this context that does not
        // only read rows or describe it; every such call takes `&mut self` here and forgets the rows first; the result borrows `self`.
        unsafe { slice::from_raw_parts(start, width * count) }
    }

    /// Rows end with every other call.
    pub(super) fn forget_rows(&mut self) {
        self.rows = Rows::NONE;
    }

    /// What the model and this context take, by kind of memory.
    pub(crate) fn memory(&self) -> Result<Vec<BufferUse>> {
        let (api, context) = (self.model.door.api, self.ptr.as_ptr());
        let mut rows: Vec<infer_llama_memory> = Vec::new();
        loop {
            let (mut count, cap) = (0, rows.len());
            let (start, out) = (rows.as_mut_ptr(), &raw mut count);
            // SAFETY: the context lives, and this thread may read it; `start` and `cap` are those of the list, `out` is a valid place.
            call("ask for the memory", |error| unsafe { api.memory_breakdown(context, start, cap, out, error) })?;
            if count <= cap {
                rows.truncate(count);
                break;
            }
            rows.resize(count, infer_llama_memory::default());
        }
        let named = rows.into_iter().map(|row| BufferUse {
            // SAFETY: `llama_door.h`: the name of a buffer type lives as long as the process.
            name: unsafe { text(row.name) },
            is_host: row.is_host,
            model: row.model,
            context: row.context,
            compute: row.compute,
        });
        Ok(named.collect())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        let api = self.model.door.api;
        // SAFETY: the pointer came from `context_new` and is freed once, here; its model lives until after this.
        unsafe { api.context_free(self.ptr.as_ptr()) };
        if let Some(pool) = self.pool {
            // SAFETY: the pool came from `threadpool_new`, is freed once, here, and the only context that used it is gone.
            unsafe { api.threadpool_free(pool.as_ptr()) };
        }
    }
}
