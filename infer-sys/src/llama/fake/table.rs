//! The table of the faked door.

use std::ptr;

use super::{adapters, context, devices, model, passes, process, samplers, state, stream, vocab};
use crate::door::size_u32;
use crate::llama::bindings::{
    INFER_LLAMA_DOOR_VERSION, infer_llama_context_info, infer_llama_device, infer_llama_error, infer_llama_limits,
    infer_llama_memory, infer_llama_model_info, infer_llama_table, infer_llama_token_info, infer_llama_vocab_info,
    llama_batch, llama_context_params, llama_model_kv_override, llama_model_params,
};
use crate::llama::{Api, COMMIT};

/// The faked door.
#[must_use]
pub fn api() -> Api {
    Api { table: TABLE.table() }
}

/// A table in a static. A test of the handshake makes others from it.
#[repr(transparent)]
#[derive(Debug)]
pub struct Table(infer_llama_table);

// SAFETY: a `Table` is only made here, of functions and of strings in statics, and is never written.
unsafe impl Sync for Table {}

impl Table {
    /// The table itself.
    #[must_use]
    pub const fn table(&self) -> &infer_llama_table {
        &self.0
    }
}

/// The table of the faked door.
pub static TABLE: Table = Table(infer_llama_table {
    size: size_u32::<infer_llama_table>(),
    version: INFER_LLAMA_DOOR_VERSION,
    commit: COMMIT_TEXT.as_ptr().cast(),
    llama_version: c"0.0.0-fake".as_ptr(),
    variant: c"fake".as_ptr(),
    fields: ptr::null(),
    n_fields: 0,
    sizeof_error: size_u32::<infer_llama_error>(),
    sizeof_model_params: size_u32::<llama_model_params>(),
    sizeof_context_params: size_u32::<llama_context_params>(),
    sizeof_batch: size_u32::<llama_batch>(),
    sizeof_kv_override: size_u32::<llama_model_kv_override>(),
    sizeof_limits: size_u32::<infer_llama_limits>(),
    sizeof_device: size_u32::<infer_llama_device>(),
    sizeof_model_info: size_u32::<infer_llama_model_info>(),
    sizeof_vocab_info: size_u32::<infer_llama_vocab_info>(),
    sizeof_token_info: size_u32::<infer_llama_token_info>(),
    sizeof_context_info: size_u32::<infer_llama_context_info>(),
    sizeof_memory: size_u32::<infer_llama_memory>(),
    backend_init: Some(process::backend_init),
    log_set: Some(process::log_set),
    fatal_set: Some(process::fatal_set),
    time_us: Some(process::time_us),
    limits: Some(process::limits),
    system_info: Some(process::system_info),
    device_count: Some(devices::device_count),
    device_info: Some(devices::device_info),
    model_default_params: Some(model::model_default_params),
    model_load_from_file: Some(model::model_load_from_file),
    model_load_from_splits: Some(model::model_load_from_splits),
    model_load_from_fd: Some(model::model_load_from_fd),
    model_free: Some(model::model_free),
    model_info: Some(model::model_info),
    model_desc: Some(model::model_desc),
    model_meta_count: Some(model::model_meta_count),
    model_meta_key: Some(model::model_meta_key),
    model_meta_val: Some(model::model_meta_val),
    model_chat_template: Some(model::model_chat_template),
    model_cls_label: Some(model::model_cls_label),
    ftype_name: Some(model::ftype_name),
    model_layer_devices: Some(devices::model_layer_devices),
    model_vocab: Some(model::model_vocab),
    vocab_info: Some(vocab::vocab_info),
    vocab_token: Some(vocab::vocab_token),
    tokenize: Some(vocab::tokenize),
    token_to_piece: Some(vocab::token_to_piece),
    detokenize: Some(vocab::detokenize),
    context_default_params: Some(context::context_default_params),
    context_new: Some(context::context_new),
    context_free: Some(context::context_free),
    context_info: Some(context::context_info),
    set_threads: Some(context::set_threads),
    set_embeddings: Some(context::set_embeddings),
    set_causal_attn: Some(context::set_causal_attn),
    set_abort_callback: Some(context::set_abort_callback),
    threadpool_new: Some(context::threadpool_new),
    threadpool_free: Some(context::threadpool_free),
    threadpool_attach: Some(context::threadpool_attach),
    memory_breakdown: Some(context::memory_breakdown),
    decode: Some(passes::decode),
    encode: Some(passes::encode),
    synchronize: Some(passes::synchronize),
    logits: Some(passes::logits),
    embeddings: Some(passes::embeddings),
    embeddings_seq: Some(passes::embeddings_seq),
    memory_clear: Some(state::memory_clear),
    memory_seq_rm: Some(state::memory_seq_rm),
    memory_seq_cp: Some(state::memory_seq_cp),
    memory_seq_add: Some(state::memory_seq_add),
    memory_seq_pos_min: Some(state::memory_seq_pos_min),
    memory_seq_pos_max: Some(state::memory_seq_pos_max),
    memory_update: Some(stream::memory_update),
    state_seq_size: Some(state::state_seq_size),
    state_seq_get: Some(state::state_seq_get),
    state_seq_set: Some(state::state_seq_set),
    state_seq_write: Some(stream::state_seq_write),
    state_seq_read: Some(stream::state_seq_read),
    adapter_load: Some(adapters::adapter_load),
    adapter_free: Some(adapters::adapter_free),
    adapter_meta_count: Some(adapters::adapter_meta_count),
    adapter_meta_key: Some(adapters::adapter_meta_key),
    adapter_meta_val: Some(adapters::adapter_meta_val),
    adapters_set: Some(adapters::adapters_set),
    adapter_load_from_fd: Some(adapters::adapter_load_from_fd),
    sampler_new: Some(samplers::sampler_new),
    sampler_free: Some(samplers::sampler_free),
    sampler_attach: Some(samplers::sampler_attach),
    sampler_inputs: Some(samplers::sampler_inputs),
    sampled: Some(samplers::sampled),
});

/// The pinned commit as a C string.
static COMMIT_TEXT: [u8; COMMIT.len() + 1] = {
    let mut text = [0; COMMIT.len() + 1];
    let mut i = 0;
    while i < COMMIT.len() {
        text[i] = COMMIT.as_bytes()[i];
        i += 1;
    }
    text
};
