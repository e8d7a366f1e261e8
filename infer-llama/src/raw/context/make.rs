//! How a context is made, with its threads.

use super::{Context, Rows, Shape};
use crate::raw::{Adapter, Fresh, Model, call, callback::on_abort, sampler::Attached};
use infer_core::{Error, Result};
use infer_sys::llama::bindings::{
    GGML_TYPE_BF16, GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_IQ4_NL, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
    GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, LLAMA_FLASH_ATTN_TYPE_AUTO, LLAMA_FLASH_ATTN_TYPE_DISABLED,
    LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_POOLING_TYPE_NONE, ggml_type, infer_llama_context_info, llama_context_params,
};
use std::{
    cell::Cell,
    mem::MaybeUninit,
    ptr,
    sync::{Arc, MutexGuard, PoisonError, atomic::AtomicBool},
};

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
    pub(super) fn make(
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

pub(super) fn default_params(model: &Model) -> llama_context_params {
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
