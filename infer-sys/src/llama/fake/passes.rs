//! Faked passes and the rows they leave.

use std::ffi::CString;

use super::context::{Context, Entry, context};
use super::control::{Fault, Rows};
use super::process::log;
use super::support::{Failure, Outcome, array, finish, get, put};
use crate::llama::bindings::{
    GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_ERROR, LLAMA_POOLING_TYPE_NONE, infer_llama_error, llama_batch, llama_context,
};

const ABORTED: i32 = 2;
const NO_ROOM: i32 = 1;
const INVALID: i32 = -1;

/// A batch, its arrays borrowed.
struct Batch<'a> {
    tokens: &'a [i32],
    pos: &'a [i32],
    n_seq_id: &'a [i32],
    seq_id: &'a [*mut i32],
    outputs: Option<&'a [i8]>,
}

impl Batch<'_> {
    /// The sequences of one token; none for a wrong one.
    ///
    /// # Safety
    ///
    /// `seq_id[i]` points to `n_seq_id[i]` numbers.
    unsafe fn sequences(&self, i: usize) -> &[i32] {
        let n = usize::try_from(self.n_seq_id[i]).unwrap_or(0);
        // SAFETY: the caller vouches for it.
        unsafe { array(self.seq_id[i], n, "seq_id") }.unwrap_or(&[])
    }

    fn wants(&self, i: usize) -> bool {
        match self.outputs {
            Some(outputs) => outputs[i] != 0,
            None => i + 1 == self.tokens.len(),
        }
    }
}

pub(super) unsafe extern "C" fn decode(
    pointer: *mut llama_context,
    batch: *const llama_batch,
    result: *mut i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the context, the batch and `result` are the caller's.
    let outcome = unsafe { pass(pointer, batch, result) };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn encode(
    pointer: *mut llama_context,
    batch: *const llama_batch,
    result: *mut i32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the context, the batch and `result` are the caller's.
    let outcome = unsafe { pass(pointer, batch, result) };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn synchronize(pointer: *mut llama_context, error: *mut infer_llama_error) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.map(|_| ());
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// # Safety
///
/// `pointer` is NULL or a context that nobody else uses; `batch` is NULL or points to a batch whose arrays are as long as it says; `result`
/// is NULL or valid for writing.
unsafe fn pass(pointer: *mut llama_context, batch: *const llama_batch, result: *mut i32) -> Outcome {
    // SAFETY: the caller vouches for it.
    let context = unsafe { context(pointer) }?;
    // SAFETY: the caller vouches for it.
    let batch = unsafe { borrow(batch) }?;
    if batch.tokens.len() > context.params.n_batch as usize {
        return Err(Failure::argument(format!(
            "a batch of {} tokens is over n_batch {}",
            batch.tokens.len(),
            context.params.n_batch
        )));
    }
    if !context.has_memory() && batch.tokens.len() > context.params.n_ubatch as usize {
        return Err(Failure::argument("a batch is over n_ubatch and this pass cannot be cut"));
    }
    let code = match context.shared.begin_pass() {
        // SAFETY: the arrays of the batch are as the caller vouches.
        None => unsafe { run(context, &batch, usize::MAX) },
        Some(Fault::Exception(message)) => return Err(Failure::exception(message)),
        Some(Fault::Result(code)) => code,
        Some(Fault::ResultAfter { result, ubatches }) => {
            // SAFETY: the arrays of the batch are as the caller vouches.
            match unsafe { run(context, &batch, ubatches) } {
                0 => result,
                other => other,
            }
        }
        Some(Fault::UntilAborted) => until_aborted(context),
    };
    if code != 0 {
        context.forget_rows();
        report(code);
    }
    // SAFETY: `result` is as the caller vouches.
    unsafe { put(result, code) }
}

/// # Safety
///
/// `pointer` is NULL or points to a batch whose arrays are as long as it says and live for `'a`.
unsafe fn borrow<'a>(pointer: *const llama_batch) -> Outcome<Batch<'a>> {
    // SAFETY: the caller vouches for it.
    let batch = unsafe { get(pointer, "batch") }?;
    if batch.token.is_null() || !batch.embd.is_null() {
        return Err(Failure::argument("a batch has tokens here"));
    }
    let n = usize::try_from(batch.n_tokens).unwrap_or(0);
    // SAFETY: as long as the batch says.
    let tokens = unsafe { array(batch.token, n, "token") }?;
    // SAFETY: as long as the batch says.
    let pos = unsafe { array(batch.pos, n, "pos") }?;
    // SAFETY: as long as the batch says.
    let n_seq_id = unsafe { array(batch.n_seq_id, n, "n_seq_id") }?;
    // SAFETY: as long as the batch says.
    let seq_id = unsafe { array(batch.seq_id, n, "seq_id") }?;
    let outputs = if batch.logits.is_null() {
        None
    } else {
        // SAFETY: as long as the batch says.
        Some(unsafe { array(batch.logits, n, "logits") }?)
    };
    Ok(Batch { tokens, pos, n_seq_id, seq_id, outputs })
}

/// Runs the first `ubatches` ubatches, and returns llama.cpp's result.
///
/// # Safety
///
/// Every `seq_id[i]` of the batch points to `n_seq_id[i]` numbers.
unsafe fn run(context: &mut Context, batch: &Batch<'_>, ubatches: usize) -> i32 {
    // SAFETY: the caller vouches for it.
    if !unsafe { is_valid(context, batch) } {
        return INVALID;
    }
    // SAFETY: the caller vouches for it.
    if context.has_memory() && !unsafe { has_room(context, batch) } {
        return NO_ROOM;
    }
    context.forget_rows();
    if !context.has_memory() {
        context.sequences.iter_mut().for_each(Vec::clear);
    }
    let n_ubatch = context.params.n_ubatch as usize;
    for (index, start) in (0..batch.tokens.len()).step_by(n_ubatch).enumerate() {
        if index >= ubatches {
            return 0;
        }
        if is_aborted(context) {
            return ABORTED;
        }
        for i in start..batch.tokens.len().min(start + n_ubatch) {
            // SAFETY: the caller vouches for it.
            let sequences = unsafe { batch.sequences(i) };
            step(context, batch, i, sequences);
        }
    }
    pool(context);
    0
}

/// Fills the pooled rows, so that handing one out writes nothing.
fn pool(context: &mut Context) {
    let width = context.pooled_width();
    if context.pooled.iter().all(Option::is_none) {
        return;
    }
    context.pooled_rows.resize(width * context.pooled.len(), 0.0);
    for (row, hash) in context.pooled_rows.chunks_exact_mut(width).zip(&context.pooled) {
        let Some(hash) = hash else { continue };
        for (k, value) in (0..).zip(row) {
            *value = number(!hash, k);
        }
    }
}

/// What llama.cpp checks of a batch.
///
/// # Safety
///
/// As for [`run`].
unsafe fn is_valid(context: &Context, batch: &Batch<'_>) -> bool {
    if batch.tokens.is_empty() {
        return false;
    }
    for i in 0..batch.tokens.len() {
        // SAFETY: the caller vouches for it.
        let sequences = unsafe { batch.sequences(i) };
        let known = usize::try_from(batch.tokens[i]).is_ok_and(|token| token < context.n_vocab);
        if !known || sequences.is_empty() {
            return false;
        }
        for seq in sequences {
            let Ok(sequence) = context.sequence(*seq) else { return false };
            // SAFETY: the caller vouches for it.
            let before = unsafe { last_before(batch, i, *seq) };
            let last = before.or_else(|| {
                let kept = if context.has_memory() { context.sequences[sequence].last() } else { None };
                kept.map(|entry| entry.pos)
            });
            if last.is_some_and(|last| last.checked_add(1) != Some(batch.pos[i])) {
                return false;
            }
        }
    }
    true
}

/// The position of the nearest earlier token of the batch in that sequence.
///
/// # Safety
///
/// As for [`run`].
unsafe fn last_before(batch: &Batch<'_>, i: usize, seq: i32) -> Option<i32> {
    for j in (0..i).rev() {
        // SAFETY: the caller vouches for it.
        if unsafe { batch.sequences(j) }.contains(&seq) {
            return Some(batch.pos[j]);
        }
    }
    None
}

/// # Safety
///
/// As for [`run`].
unsafe fn has_room(context: &Context, batch: &Batch<'_>) -> bool {
    // A cell is of one stream, so that only the unified layout lets sequences have one together: llama.cpp then finds no room.
    if !context.params.kv_unified && batch.n_seq_id.iter().any(|n| *n > 1) {
        return false;
    }
    let cells = context.cells() as usize;
    (0..context.used.len()).all(|stream| {
        let new = (0..batch.tokens.len())
            .filter(|i| {
                // SAFETY: the caller vouches for it.
                let sequences = unsafe { batch.sequences(*i) };
                sequences.first().is_some_and(|seq| context.stream(seq.unsigned_abs() as usize) == stream)
            })
            .count();
        context.used[stream] as usize + new <= cells
    })
}

/// One token.
fn step(context: &mut Context, batch: &Batch<'_>, i: usize, sequences: &[i32]) {
    let first = sequences[0].unsigned_abs() as usize;
    let before = context.sequences[first].last().map_or(context.salt, |entry| entry.hash);
    let hash = mix(before ^ u64::from(batch.tokens[i].unsigned_abs()).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let cell = if context.has_memory() { context.take_cell(context.stream(first)) } else { None };
    for (n, seq) in sequences.iter().enumerate() {
        if sequences[..n].contains(seq) {
            continue;
        }
        let cell = cell.unwrap_or(0);
        if n > 0 && context.has_memory() {
            context.holders[cell as usize] += 1;
        }
        let cells = context.cells() as usize;
        let sequence = &mut context.sequences[seq.unsigned_abs() as usize];
        if sequence.capacity() == 0 {
            // Once and for all, so that a steady state allocates nothing.
            sequence.reserve_exact(cells);
        }
        sequence.push(Entry { pos: batch.pos[i], hash, cell });
    }
    let pooled = context.params.embeddings && context.params.pooling_type != LLAMA_POOLING_TYPE_NONE;
    if pooled {
        for seq in sequences {
            context.pooled[seq.unsigned_abs() as usize] = Some(hash);
        }
    }
    if batch.wants(i) || context.params.embeddings {
        let n = context.n_vocab;
        let row = context.logits.len() / n;
        context.rows.push(i32::try_from(row).unwrap_or(-1));
        context.logits.extend((0..n as u32).map(|token| number(hash, token)));
        if context.params.embeddings && !pooled {
            let width = context.shared.script.width.unsigned_abs();
            context.embeddings.extend((0..width).map(|k| number(!hash, k)));
        }
    } else {
        context.rows.push(-1);
    }
}

/// A number in [-8, 8) that depends on both. In 32 bits, so that a row is a few vector instructions.
fn number(hash: u64, index: u32) -> f32 {
    let seed = (hash ^ hash >> 32) as u32;
    let bits = (seed ^ index.wrapping_mul(0x9E37_79B9)).wrapping_mul(0x85EB_CA6B) >> 8;
    bits as f32 / (1 << 20) as f32 - 8.0
}

pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

fn is_aborted(context: &Context) -> bool {
    // SAFETY: `set_abort_callback` or `context_new` took the callback together with this pointer, for as long as passes run.
    context.params.abort_callback.is_some_and(|callback| unsafe { callback(context.params.abort_callback_data) })
}

fn until_aborted(context: &Context) -> i32 {
    while context.params.abort_callback.is_some() && !is_aborted(context) {
        std::thread::yield_now();
    }
    ABORTED
}

/// A line in two fragments, as llama.cpp writes them.
fn report(code: i32) {
    log(GGML_LOG_LEVEL_ERROR, c"fake: failed to decode, ");
    let rest = CString::new(format!("ret = {code}\n")).unwrap_or_default();
    log(GGML_LOG_LEVEL_CONT, &rest);
}

/// Gives out a row as the test wants it.
///
/// # Safety
///
/// `out` and `len` are NULL or valid for writing.
unsafe fn give(rows: Rows, row: Option<&[f32]>, out: *mut *const f32, len: *mut usize) -> Outcome {
    let row = row.filter(|_| rows != Rows::Failed).ok_or_else(|| Failure::failed("there is no such row"))?;
    let pointer = if rows == Rows::Null { std::ptr::null() } else { row.as_ptr() };
    // SAFETY: the caller vouches for it.
    unsafe { put(out, pointer) }?;
    // SAFETY: the caller vouches for it.
    unsafe { put(len, if rows == Rows::Short { row.len() - 1 } else { row.len() }) }
}

fn row_of(rows: &[i32], index: i32, all: &[f32], width: usize) -> Outcome<Option<std::ops::Range<usize>>> {
    let Ok(index) = usize::try_from(index) else {
        return Err(Failure::argument(format!("index {index} is negative")));
    };
    let start = rows.get(index).and_then(|row| usize::try_from(*row).ok()).map(|row| row * width);
    Ok(start.filter(|start| start + width <= all.len()).map(|start| start..start + width))
}

pub(super) unsafe extern "C" fn logits(
    pointer: *mut llama_context,
    index: i32,
    out: *mut *const f32,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let range = row_of(&context.rows, index, &context.logits, context.n_vocab)?;
        // SAFETY: `out` and `len` are the caller's, valid for writing or NULL.
        unsafe { give(context.shared.rows(), range.map(|range| &context.logits[range]), out, len) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn embeddings(
    pointer: *mut llama_context,
    index: i32,
    out: *mut *const f32,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let width = context.shared.script.width.unsigned_abs() as usize;
        let range = row_of(&context.rows, index, &context.embeddings, width)?;
        // SAFETY: `out` and `len` are the caller's, valid for writing or NULL.
        unsafe { give(context.shared.rows(), range.map(|range| &context.embeddings[range]), out, len) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn embeddings_seq(
    pointer: *mut llama_context,
    seq: i32,
    out: *mut *const f32,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context of this table that no other thread uses.
    let outcome = unsafe { context(pointer) }.and_then(|context| {
        let sequence = context.sequence(seq)?;
        let width = context.pooled_width();
        let row = context.pooled[sequence].map(|_| &context.pooled_rows[sequence * width..(sequence + 1) * width]);
        // SAFETY: `out` and `len` are the caller's, valid for writing or NULL.
        unsafe { give(context.shared.rows(), row, out, len) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
