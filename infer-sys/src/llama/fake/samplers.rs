//! Sampling in the graph, which the faked door has none of: it computes nothing that could draw.

use super::context::context;
use super::support::{Failure, finish};
use crate::llama::bindings::{infer_llama_error, infer_llama_sampler, llama_context};

pub(super) unsafe extern "C" fn sampler_new(
    _greedy: bool,
    _min_p: bool,
    _candidates: u32,
    _out: *mut *mut infer_llama_sampler,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, Err(Failure::unsupported("the faked door draws no tokens"))) }
}

pub(super) unsafe extern "C" fn sampler_free(_sampler: *mut infer_llama_sampler) {}

pub(super) unsafe extern "C" fn sampler_attach(
    pointer: *mut llama_context,
    _seq: i32,
    sampler: *mut infer_llama_sampler,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context that nobody else uses.
    let outcome = unsafe { context(pointer) }.and_then(|_| {
        if sampler.is_null() {
            return Ok(());
        }
        Err(Failure::argument("this table has made no sampler"))
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn sampler_inputs(
    _sampler: *mut infer_llama_sampler,
    _uniform: f32,
    _scale: f32,
    _least: f32,
    _top_k: u32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, Err(Failure::argument("this table has made no sampler"))) }
}

pub(super) unsafe extern "C" fn sampled(
    pointer: *mut llama_context,
    _index: i32,
    _token: *mut i32,
    _logprob: *mut f32,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a context that nobody else uses.
    let outcome = unsafe { context(pointer) }.and_then(|_| Err(Failure::failed("no token was drawn there")));
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
