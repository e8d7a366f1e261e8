//! Faked models.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::control::{Fault, Kind, Shared};
use super::devices::place;
use super::process::log;
use super::support::{Failure, Outcome, array, fill_string, finish, get, put, string};
use super::vocab::Vocab;
use crate::llama::bindings::{
    GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_ERROR, LLAMA_LOAD_MODE_AUTO, LLAMA_ROPE_TYPE_NORM, infer_llama_error,
    infer_llama_model_info, llama_model, llama_model_params, llama_vocab,
};

/// What a `llama_model` is here.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) shared: Arc<Shared>,
    pub(super) vocab: Vocab,
    /// Contexts and adapters that still need it.
    pub(super) users: Arc<AtomicUsize>,
    /// The device of each layer.
    pub(super) layers: [usize; 2],
    pub(super) vocab_only: bool,
}

/// # Safety
///
/// `pointer` is NULL or a model of this table that is not yet freed.
pub(super) unsafe fn model<'a>(pointer: *const llama_model) -> Outcome<&'a Model> {
    // SAFETY: `load` made the pointer from a `Model`, which is only changed through atomics.
    unsafe { get(pointer.cast::<Model>(), "model") }
}

pub(super) unsafe extern "C" fn model_default_params(out: *mut llama_model_params) {
    let params = llama_model_params {
        n_gpu_layers: -1,
        split_mode: 1,
        load_mode: LLAMA_LOAD_MODE_AUTO,
        use_extra_bufts: true,
        ..llama_model_params::default()
    };
    // SAFETY: `out` is the caller's, valid for writing or NULL, in which case there is nobody to tell.
    let _ = unsafe { put(out, params) };
}

pub(super) unsafe extern "C" fn model_load_from_file(
    path: *const c_char,
    params: *const llama_model_params,
    out: *mut *mut llama_model,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the path is the caller's, a string or NULL.
    let outcome = unsafe { string(path, "path") }.and_then(|_| {
        // SAFETY: `params` and `out` are the caller's.
        unsafe { load(params, out) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_load_from_splits(
    paths: *const *const c_char,
    n_paths: usize,
    params: *const llama_model_params,
    out: *mut *mut llama_model,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the paths are the caller's, `n_paths` of them.
    let outcome = unsafe { array(paths, n_paths, "paths") }.and_then(|paths| {
        if paths.is_empty() || paths.contains(&ptr::null()) {
            return Err(Failure::argument("no paths, or one that is NULL"));
        }
        // SAFETY: `params` and `out` are the caller's.
        unsafe { load(params, out) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_load_from_fd(
    _fd: i32,
    params: *const llama_model_params,
    out: *mut *mut llama_model,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: `params` and `out` are the caller's.
    let outcome = unsafe { load(params, out) };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// # Safety
///
/// `params` is NULL or points to parameters whose progress callback may be called with its data, and whose lists are as `llama.h` has them; `out` is NULL or valid for writing.
unsafe fn load(params: *const llama_model_params, out: *mut *mut llama_model) -> Outcome {
    // SAFETY: the caller vouches for it.
    let params = unsafe { get(params, "params") }?;
    if out.is_null() {
        return Err(Failure::argument("out is NULL"));
    }
    // SAFETY: the caller vouches for it.
    let layers = unsafe { place(params) }?;
    let shared = Shared::next();
    match &shared.script.load_fault {
        None => {}
        Some(Fault::Exception(message)) => return Err(Failure::exception(message)),
        Some(_) => {
            log(GGML_LOG_LEVEL_ERROR, c"fake: error loading model: ");
            log(GGML_LOG_LEVEL_CONT, c"as planned\n");
            return Err(Failure::failed("the model could not be loaded"));
        }
    }
    if let Some(callback) = params.progress_callback {
        for progress in &shared.script.loading {
            // SAFETY: the callback and its data are the caller's, for calls while it loads.
            let go_on = unsafe { callback(*progress, params.progress_callback_user_data) };
            if !go_on {
                return Err(Failure::failed("the model could not be loaded"));
            }
        }
    }
    shared.live.models.fetch_add(1, Ordering::AcqRel);
    let vocab = Vocab::new(shared.script.extra_tokens);
    let model = Box::new(Model { shared, vocab, users: Arc::default(), layers, vocab_only: params.vocab_only });
    // SAFETY: `out` is not NULL, and the caller vouches for the rest.
    unsafe { put(out, Box::into_raw(model).cast()) }
}

pub(super) unsafe extern "C" fn model_free(pointer: *mut llama_model) {
    if pointer.is_null() {
        return;
    }
    // SAFETY: `load` made the pointer from a box, and the caller frees it once.
    let model = unsafe { Box::from_raw(pointer.cast::<Model>()) };
    if model.users.load(Ordering::Acquire) != 0 {
        model.shared.breach("a model was freed before its contexts or adapters");
    }
    model.shared.live.models.fetch_sub(1, Ordering::AcqRel);
}

pub(super) unsafe extern "C" fn model_info(
    pointer: *const llama_model,
    out: *mut infer_llama_model_info,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|model| {
        let script = &model.shared.script;
        let parameters = u64::from(script.width.unsigned_abs()) * u64::from(model.vocab.len().unsigned_abs());
        let info = infer_llama_model_info {
            n_ctx_train: script.context_length,
            n_embd: script.width,
            n_embd_inp: script.width,
            n_embd_out: script.width,
            n_layer: 1,
            n_head: 1,
            n_head_kv: 1,
            n_swa: 0,
            rope_type: LLAMA_ROPE_TYPE_NORM,
            rope_freq_scale_train: 1.0,
            n_cls_out: script.class_outputs,
            ftype: 0,
            n_params: parameters,
            size: parameters * 4,
            decoder_start_token: -1,
            has_encoder: matches!(script.kind, Kind::Encoder | Kind::EncoderDecoder),
            has_decoder: script.kind != Kind::Encoder,
            is_recurrent: script.kind == Kind::Recurrent,
            is_hybrid: false,
            is_diffusion: false,
        };
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        unsafe { put(out, info) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_desc(
    pointer: *const llama_model,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|_| {
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill_string(buf, cap, len, c"fake F32") }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_meta_count(pointer: *const llama_model) -> i32 {
    // SAFETY: the caller passes a model of this table.
    unsafe { model(pointer) }.map_or(0, |model| model.shared.script.metadata.len() as i32)
}

/// # Safety
///
/// `pointer` is NULL or a model of this table that is not yet freed.
unsafe fn meta<'a>(pointer: *const llama_model, index: i32) -> Outcome<(&'a CStr, &'a CStr)> {
    // SAFETY: the caller vouches for it.
    let model = unsafe { model(pointer) }?;
    usize::try_from(index)
        .ok()
        .and_then(|index| model.shared.script.metadata.get(index))
        .map(|(key, value)| (key.as_c_str(), value.as_c_str()))
        .ok_or_else(|| Failure::failed("no metadata of that index"))
}

pub(super) unsafe extern "C" fn model_meta_key(
    pointer: *const llama_model,
    index: i32,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { meta(pointer, index) }.and_then(|(key, _)| {
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill_string(buf, cap, len, key) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_meta_val(
    pointer: *const llama_model,
    index: i32,
    buf: *mut c_char,
    cap: usize,
    len: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { meta(pointer, index) }.and_then(|(_, value)| {
        // SAFETY: the buffer and `len` are the caller's, valid for what it says of them or NULL.
        unsafe { fill_string(buf, cap, len, value) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_chat_template(
    pointer: *const llama_model,
    name: *const c_char,
    out: *mut *const c_char,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|model| {
        let template = model.shared.script.chat_template.as_deref().filter(|_| name.is_null());
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        unsafe { put(out, template.map_or(ptr::null(), CStr::as_ptr)) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn model_cls_label(
    pointer: *const llama_model,
    index: u32,
    out: *mut *const c_char,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|model| {
        let label = model.shared.script.class_labels.get(index as usize);
        // SAFETY: `out` is the caller's, valid for writing or NULL.
        unsafe { put(out, label.map_or(ptr::null(), |label| label.as_ptr())) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

pub(super) unsafe extern "C" fn ftype_name(_ftype: i32) -> *const c_char {
    c"all F32".as_ptr()
}

pub(super) unsafe extern "C" fn model_vocab(pointer: *const llama_model) -> *const llama_vocab {
    // SAFETY: the caller passes a model of this table.
    unsafe { model(pointer) }.map_or(ptr::null(), |model| ptr::from_ref(&model.vocab).cast())
}
