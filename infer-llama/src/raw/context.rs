//! The owner of a `llama_context`, with its threads.

mod cells;
mod encoder;
mod hidden;

pub(super) use cells::position;
pub(crate) use encoder::{Encoder, EncoderParams};

use super::{
    Adapter, Batch, Fresh, Model, call,
    callback::on_abort,
    sampler::{Attached, Sampler},
    text,
};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::llama::{
    Api,
    bindings::{
        GGML_TYPE_BF16, GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_IQ4_NL, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
        GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, LLAMA_FLASH_ATTN_TYPE_AUTO, LLAMA_FLASH_ATTN_TYPE_DISABLED,
        LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_POOLING_TYPE_NONE, ggml_threadpool, ggml_type, infer_llama_context_info,
        infer_llama_memory, llama_context, llama_context_params,
    },
};
use std::{
    cell::Cell,
    mem::MaybeUninit,
    ptr::{self, NonNull},
    slice,
    sync::{Arc, MutexGuard, PoisonError, atomic::AtomicBool},
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

/// How a context is made. What is not here is as llama.cpp has it; a RoPE scale above all, which would change the model.
#[derive(Clone, Copy)]
pub(crate) struct ContextParams {
    pub(crate) cells: u32,
    pub(crate) batch: u32,
    pub(crate) ubatch: u32,
    pub(crate) sequences: u32,
    /// Rows that one call of [`Context::decode`] can give; at least one a sequence.
    pub(crate) outputs: u32,
    pub(crate) threads: u32,
    pub(crate) unified: bool,
    pub(crate) keys: KvFormat,
    pub(crate) values: KvFormat,
    /// `None`: where it is known to be good.
    pub(crate) flash_attention: Option<bool>,
    /// Tokens can be drawn in the graph, one a sequence and pass.
    pub(crate) draws: bool,
}

/// The number format of keys or values.
#[derive(Clone, Copy)]
pub(crate) enum KvFormat {
    F32,
    F16,
    BF16,
    Q8_0,
    Q5_1,
    Q5_0,
    Q4_1,
    Q4_0,
    IQ4NL,
}

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
    /// Makes a context that can compute with these adapters of the model. While it is raised, `stop` ends a pass.
    pub(crate) fn new(
        model: Arc<Model>,
        params: ContextParams,
        adapters: Vec<Arc<Adapter>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        if !adapters.iter().all(|adapter| adapter.is_of(&model)) {
            return Err(Error::invalid_input(
                "an adapter was loaded for another model, or for another opening of this one",
            ));
        }
        let mut raw = default_params(&model);
        raw.n_ctx = params.cells;
        raw.n_batch = params.batch;
        raw.n_ubatch = params.ubatch;
        raw.n_seq_max = params.sequences;
        // The default would reserve logits for every token of a batch.
        raw.n_outputs_max = params.outputs;
        // A model that is made for pooled embeddings would give no hidden state of its own for a token.
        raw.pooling_type = LLAMA_POOLING_TYPE_NONE;
        if params.draws {
            raw.n_outputs_max_per_seq = 1;
        }
        raw.kv_unified = params.unified;
        raw.type_k = ggml_type_of(params.keys);
        raw.type_v = ggml_type_of(params.values);
        raw.flash_attn_type = match params.flash_attention {
            None => LLAMA_FLASH_ATTN_TYPE_AUTO,
            Some(true) => LLAMA_FLASH_ATTN_TYPE_ENABLED,
            Some(false) => LLAMA_FLASH_ATTN_TYPE_DISABLED,
        };
        let facts = model.facts()?;
        let mut context = Self::make(model, raw, params.threads, adapters, stop)?;
        // Such a memory moves the states of other sequences as well, first in its books and then in the pass: stopped between the two,
        // what they find is another's.
        context.stoppable = !facts.is_recurrent && !facts.is_hybrid;
        Ok(context)
    }

    /// Makes a context of these parameters, with threads of its own.
    fn make(
        model: Arc<Model>,
        mut raw: llama_context_params,
        threads: u32,
        adapters: Vec<Arc<Adapter>>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        raw.n_threads = threads.cast_signed();
        raw.n_threads_batch = threads.cast_signed();
        raw.abort_callback = Some(on_abort);
        raw.abort_callback_data = Arc::as_ptr(&stop).cast_mut().cast();

        let api = model.door.api;
        // SAFETY: what was made and nobody owns yet is freed once, while the model lives.
        let mut fresh = Fresh::new(|context| unsafe { api.context_free(context) });
        {
            let _shared = model.shared()?;
            let _alone = Alone::with(&model)?;
            let (model, raw, out) = (model.ptr.as_ptr(), &raw const raw, fresh.place());
            // SAFETY: the model lives, the parameters are the library's own with numbers put in, `out` is a valid place. No
            // other context of the model is being made. What the abort callback is given lives in `stop` as long as the context.
            call("make a context", |error| unsafe { api.context_new(model, raw, out, error) })?;
        }
        let ptr = fresh.take();
        // From here on `drop` frees it.
        let mut context = Self {
            ptr,
            pool: None,
            rows: Rows::NONE,
            shape: Shape::default(),
            stop,
            hidden: Some(raw.embeddings),
            polled: Some(true),
            stoppable: true,
            adapters,
            samplers: Vec::new(),
            kept: Vec::new(),
            model,
        };
        // 0 has the library take the other.
        context.shape = context.ask_shape(if raw.n_outputs_max == 0 { raw.n_batch } else { raw.n_outputs_max })?;
        context.samplers.resize_with(context.shape.sequences as usize, || Attached::Nothing);
        if threads > 1 {
            context.attach_threads(threads)?;
        }
        Ok(context)
    }

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

    fn ask_shape(&self, outputs: u32) -> Result<Shape> {
        let mut info = infer_llama_context_info::default();
        let (api, context, out) = (self.model.door.api, self.ptr.as_ptr(), &raw mut info);
        // SAFETY: the context lives; the place is valid.
        call("describe the context", |error| unsafe { api.context_info(context, out, error) })?;
        Ok(Shape {
            cells: info.n_ctx,
            cells_per_sequence: info.n_ctx_seq,
            batch: info.n_batch,
            sequences: info.n_seq_max,
            outputs,
            can_shift: info.can_shift,
            has_memory: info.has_memory,
            is_causal: info.causal_attn,
        })
    }

    fn attach_threads(&mut self, threads: u32) -> Result<()> {
        /// How long threads spin between passes before they sleep, 0 to 100. With ggml's own 50 that is longer than a pass takes, on a
        /// core that somebody else wants: two sessions taking turns on two cores needed 55 ms a step, and need 9 with 0, as one
        /// alone does with either. Within a pass they spin in any case.
        const POLL: u32 = 0;
        let (api, context) = (self.model.door.api, self.ptr.as_ptr());
        // SAFETY: what was made and nobody owns yet is freed once; nothing uses it.
        let mut fresh = Fresh::new(|pool| unsafe { api.threadpool_free(pool) });
        let out = fresh.place();
        // SAFETY: the place is valid.
        call("start threads", |error| unsafe { api.threadpool_new(threads.cast_signed(), POLL, out, error) })?;
        let pool = fresh.take();
        self.pool = Some(pool);
        let pool = pool.as_ptr();
        // SAFETY: the context lives and is this thread's alone; the pool is new, serves it only, and is freed after it. NULL has
        // batches use the same pool.
        call("use the threads", |error| unsafe { api.threadpool_attach(context, pool, ptr::null_mut(), error) })
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

thread_local! {
    static MAKING: Cell<bool> = const { Cell::new(false) };
}

/// The right to make a context of a model.
struct Alone<'m> {
    _lock: MutexGuard<'m, ()>,
}

impl<'m> Alone<'m> {
    /// Waits until no other thread makes one. On a thread that makes one, which is a `tracing` subscriber that the library's log
    /// reached, it would wait for itself.
    fn with(model: &'m Model) -> Result<Self> {
        if MAKING.get() {
            return Err(Error::invalid_input(
                "a session or an encoder cannot be made by whoever is told what is logged while one is made",
            ));
        }
        // A panic in here leaves nothing half done: the lock protects the making, not data.
        let lock = model.making.lock().unwrap_or_else(PoisonError::into_inner);
        MAKING.set(true);
        Ok(Self { _lock: lock })
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        MAKING.set(false);
    }
}

fn default_params(model: &Model) -> llama_context_params {
    let mut raw = MaybeUninit::<llama_context_params>::uninit();
    // SAFETY: the place is valid, and the entry fills all of it.
    unsafe { model.door.api.context_default_params(raw.as_mut_ptr()) };
    // SAFETY: it was filled just now.
    unsafe { raw.assume_init() }
}

fn ggml_type_of(format: KvFormat) -> ggml_type {
    match format {
        KvFormat::F32 => GGML_TYPE_F32,
        KvFormat::F16 => GGML_TYPE_F16,
        KvFormat::BF16 => GGML_TYPE_BF16,
        KvFormat::Q8_0 => GGML_TYPE_Q8_0,
        KvFormat::Q5_1 => GGML_TYPE_Q5_1,
        KvFormat::Q5_0 => GGML_TYPE_Q5_0,
        KvFormat::Q4_1 => GGML_TYPE_Q4_1,
        KvFormat::Q4_0 => GGML_TYPE_Q4_0,
        KvFormat::IQ4NL => GGML_TYPE_IQ4_NL,
    }
}
