//! Faked contexts: what they hold, and the entries that make, free and set them.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::control::{Kind, Shared};
use super::model::model;
use super::process::{MAX_SEQUENCES, MAX_THREADS};
use super::support::{Failure, Outcome, finish, get, get_mut, put};
use crate::llama::bindings::{
    GGML_TYPE_F16, LLAMA_ATTENTION_TYPE_UNSPECIFIED, LLAMA_FLASH_ATTN_TYPE_AUTO, LLAMA_POOLING_TYPE_NONE,
    LLAMA_POOLING_TYPE_RANK, LLAMA_POOLING_TYPE_UNSPECIFIED, LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED, ggml_abort_callback,
    ggml_threadpool, infer_llama_context_info, infer_llama_error, infer_llama_memory, llama_context,
    llama_context_params, llama_model,
};

/// A position of a sequence: the hash of all tokens up to and with this one, and the cell it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) pos: i32,
    pub(super) hash: u64,
    pub(super) cell: u32,
}

/// What a `llama_context` is here.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) shared: Arc<Shared>,
    /// Counts what still needs the model. Not the model itself: a caller who frees that too early is to be told, and not to crash.
    model_users: Arc<AtomicUsize>,
    pub(super) n_vocab: usize,
    pub(super) params: llama_context_params,
    pub(super) sequences: Vec<Vec<Entry>>,
    /// How many sequences hold each cell, and the cells that none holds.
    pub(super) holders: Vec<u16>,
    pub(super) free: Vec<u32>,
    /// Cells in use, stream by stream. One stream when the layout is unified.
    pub(super) used: Vec<u32>,
    /// Folded into every hash: which adapters are set.
    pub(super) salt: u64,
    /// Rows of the last pass: for each position of the batch its row, or -1.
    pub(super) rows: Vec<i32>,
    pub(super) logits: Vec<f32>,
    pub(super) embeddings: Vec<f32>,
    /// Pooled rows of the last pass: for each sequence its hash.
    pub(super) pooled: Vec<Option<u64>>,
    pub(super) pooled_rows: Vec<f32>,
}

impl Context {
    pub(super) fn has_memory(&self) -> bool {
        self.shared.script.kind != Kind::Encoder
    }

    pub(super) fn stream(&self, sequence: usize) -> usize {
        if self.params.kv_unified { 0 } else { sequence }
    }

    /// Cells of one stream.
    pub(super) fn cells(&self) -> u32 {
        if self.params.kv_unified { self.params.n_ctx } else { self.params.n_ctx / self.params.n_seq_max }
    }

    /// Numbers in a pooled row.
    pub(super) fn pooled_width(&self) -> usize {
        if self.params.pooling_type == LLAMA_POOLING_TYPE_RANK {
            self.shared.script.class_outputs as usize
        } else {
            self.shared.script.width as usize
        }
    }

    pub(super) fn sequence(&self, seq: i32) -> Outcome<usize> {
        usize::try_from(seq).ok().filter(|seq| *seq < self.sequences.len()).ok_or_else(|| {
            Failure::argument(format!("sequence {seq} is outside the {} of the context", self.sequences.len()))
        })
    }

    /// Takes a cell, which must be there.
    pub(super) fn take_cell(&mut self, stream: usize) -> Option<u32> {
        let cell = self.free.pop()?;
        self.holders[cell as usize] = 1;
        self.used[stream] += 1;
        Some(cell)
    }

    /// Gives back a sequence's hold on a cell.
    pub(super) fn drop_cell(&mut self, stream: usize, cell: u32) {
        let holders = &mut self.holders[cell as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(cell);
            self.used[stream] -= 1;
        }
    }

    pub(super) fn forget_rows(&mut self) {
        self.rows.clear();
        self.logits.clear();
        self.embeddings.clear();
        self.pooled.fill(None);
    }
}

/// # Safety
///
/// `pointer` is NULL or a context of this table that is not yet freed and that no other thread uses.
pub(super) unsafe fn context<'a>(pointer: *mut llama_context) -> Outcome<&'a mut Context> {
    // SAFETY: `context_new` made the pointer from a `Context`.
    unsafe { get_mut(pointer.cast::<Context>(), "context") }
}

pub(super) unsafe extern "C" fn context_default_params(out: *mut llama_context_params) {
    let params = llama_context_params {
        n_ctx: 512,
        n_batch: 2048,
        n_ubatch: 512,
        n_seq_max: 1,
        n_outputs_max_per_seq: 1,
        n_threads: 4,
        n_threads_batch: 4,
        rope_scaling_type: LLAMA_ROPE_SCALING_TYPE_UNSPECIFIED,
        pooling_type: LLAMA_POOLING_TYPE_UNSPECIFIED,
        attention_type: LLAMA_ATTENTION_TYPE_UNSPECIFIED,
        flash_attn_type: LLAMA_FLASH_ATTN_TYPE_AUTO,
        type_k: GGML_TYPE_F16,
        type_v: GGML_TYPE_F16,
        offload_kqv: true,
        no_perf: true,
        op_offload: true,
        swa_full: true,
        ..llama_context_params::default()
    };
    // SAFETY: `out` is the caller's, valid for writing or NULL, in which case there is nobody to tell.
    let _ = unsafe { put(out, params) };
}

pub(super) unsafe extern "C" fn context_new(
    model: *mut llama_model,
    params: *const llama_context_params,
    out: *mut *mut llama_context,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: all three are the caller's: a model of this table, parameters to read, a place to write.
    let outcome = unsafe { make(model, params) }.and_then(|context| {
        let shared = Arc::clone(&context.shared);
        let pointer = Box::into_raw(context);
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        let written = unsafe { put(out, pointer.cast()) };
        if written.is_err() {
            // SAFETY: the box was just given up, and nobody else has it.
            drop(unsafe { Box::from_raw(pointer) });
        } else {
            shared.live.contexts.fetch_add(1, Ordering::AcqRel);
        }
        written
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// # Safety
///
/// `pointer` is NULL or a model of this table that is not yet freed; `params` is NULL or points to parameters.
unsafe fn make(pointer: *const llama_model, params: *const llama_context_params) -> Outcome<Box<Context>> {
    // SAFETY: the caller vouches for it.
    let model = unsafe { model(pointer) }?;
    // SAFETY: the caller vouches for it.
    let mut params = *unsafe { get(params, "params") }?;
    check(&params)?;
    if params.n_ctx == 0 {
        params.n_ctx = model.shared.script.context_length.unsigned_abs();
    }
    params.n_ubatch = params.n_ubatch.min(params.n_batch);
    if params.pooling_type == LLAMA_POOLING_TYPE_UNSPECIFIED {
        params.pooling_type = LLAMA_POOLING_TYPE_NONE;
    }
    let n_seq = params.n_seq_max as usize;
    let streams = if params.kv_unified { 1 } else { n_seq };
    model.users.fetch_add(1, Ordering::AcqRel);
    Ok(Box::new(Context {
        shared: Arc::clone(&model.shared),
        model_users: Arc::clone(&model.users),
        n_vocab: model.vocab.len().unsigned_abs() as usize,
        params,
        sequences: vec![Vec::new(); n_seq],
        holders: vec![0; params.n_ctx as usize],
        free: (0..params.n_ctx).rev().collect(),
        used: vec![0; streams],
        salt: 0,
        rows: Vec::new(),
        logits: Vec::new(),
        embeddings: Vec::new(),
        pooled: vec![None; n_seq],
        pooled_rows: Vec::new(),
    }))
}

fn check(params: &llama_context_params) -> Outcome {
    if params.n_seq_max < 1 || params.n_seq_max > MAX_SEQUENCES {
        return Err(Failure::argument(format!("n_seq_max {} is outside 1..={MAX_SEQUENCES}", params.n_seq_max)));
    }
    if params.n_batch < 1 || params.n_ubatch < 1 {
        return Err(Failure::argument("n_batch or n_ubatch is 0"));
    }
    check_threads(params.n_threads)?;
    check_threads(params.n_threads_batch)?;
    if !params.samplers.is_null() || params.n_samplers != 0 || !params.ctx_other.is_null() {
        return Err(Failure::argument("samplers and borrowed contexts are not offered"));
    }
    Ok(())
}

fn check_threads(n: i32) -> Outcome {
    if (1..=MAX_THREADS).contains(&n) {
        Ok(())
    } else {
        Err(Failure::argument(format!("threads {n} is outside 1..={MAX_THREADS}")))
    }
}

pub(super) unsafe extern "C" fn context_free(pointer: *mut llama_context) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: `context_new` made the pointer from a box, and the caller frees it once.
    let context = unsafe { Box::from_raw(pointer.cast::<Context>()) };
    context.shared.live.contexts.fetch_sub(1, Ordering::AcqRel);
    context.model_users.fetch_sub(1, Ordering::AcqRel);
}

pub(super) unsafe extern "C" fn context_info(
    pointer: *const llama_context,
    out: *mut infer_llama_context_info,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer.cast_mut()) }.and_then(|context| {
        let params = &context.params;
        let info = infer_llama_context_info {
            n_ctx: params.n_ctx,
            n_ctx_seq: context.cells(),
            n_batch: params.n_batch,
            n_ubatch: params.n_ubatch,
            n_seq_max: params.n_seq_max,
            n_threads: params.n_threads,
            n_threads_batch: params.n_threads_batch,
            pooling_type: params.pooling_type,
            causal_attn: context.has_memory(),
            has_memory: context.has_memory(),
            can_shift: context.shared.script.kind == Kind::Decoder,
        };
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        unsafe { put(out, info) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn set_threads(
    pointer: *mut llama_context,
    n_threads: i32,
    n_threads_batch: i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        check_threads(n_threads)?;
        check_threads(n_threads_batch)?;
        context.params.n_threads = n_threads;
        context.params.n_threads_batch = n_threads_batch;
        Ok(())
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn set_embeddings(
    pointer: *mut llama_context,
    on: bool,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.map(|context| context.params.embeddings = on);
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// Attention is always causal here, and the order of the tokens never matters less.
pub(super) unsafe extern "C" fn set_causal_attn(
    pointer: *mut llama_context,
    _on: bool,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.map(|_| ());
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn set_abort_callback(
    pointer: *mut llama_context,
    callback: ggml_abort_callback,
    user_data: *mut c_void,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.map(|context| {
        context.params.abort_callback = callback;
        context.params.abort_callback_data = user_data;
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn threadpool_new(
    n_threads: i32,
    _poll: u32,
    out: *mut *mut ggml_threadpool,
    error: *mut infer_llama_error,
) -> i32 {
    let outcome = check_threads(n_threads).and_then(|()| {
        let pool = Box::into_raw(Box::new(n_threads));
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        let written = unsafe { put(out, pool.cast()) };
        if written.is_err() {
            // SAFETY: the box was just given up, and nobody else has it.
            drop(unsafe { Box::from_raw(pool) });
        }
        written
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn threadpool_free(pool: *mut ggml_threadpool) {
    if !pool.is_null() {
        // SAFETY: `threadpool_new` made the pointer from a box of this type, and the caller frees it once.
        drop(unsafe { Box::from_raw(pool.cast::<i32>()) });
    }
}

pub(super) unsafe extern "C" fn threadpool_attach(
    pointer: *mut llama_context,
    pool: *mut ggml_threadpool,
    batch: *mut ggml_threadpool,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }
        .and_then(|_| if pool.is_null() && !batch.is_null() { Err(Failure::argument("pool is NULL")) } else { Ok(()) });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn memory_breakdown(
    pointer: *const llama_context,
    out: *mut infer_llama_memory,
    cap: usize,
    n: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer.cast_mut()) }.and_then(|context| {
        let name: *const c_char = c"CPU".as_ptr();
        let row = infer_llama_memory {
            name,
            is_host: true,
            model: 1024,
            context: u64::from(context.params.n_ctx) * 16,
            compute: 4096,
        };
        // SAFETY: `n` is the caller's, valid for writing or NULL.
        unsafe { put(n, 1) }?;
        if cap == 0 || ptr::eq(out, ptr::null()) {
            return Ok(());
        }
        // SAFETY: `out` has room for `cap` rows, which is one at least.
        unsafe { put(out, row) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
