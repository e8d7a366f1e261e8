//! One method an entry of the table.

use std::ffi::{c_char, c_void};

use super::Api;
use super::bindings::*;
use crate::door::entries;

entries! {
    "llama_door.h", infer_llama_table from backend_init;

    /// Once, before anything else but `log_set` and `fatal_set`.
    fn backend_init(error: *mut infer_llama_error) -> i32;

    /// Where log fragments go, process-wide.
    fn log_set(callback: ggml_log_callback, user_data: *mut c_void);

    /// Who is told the reason before a failed assertion ends the process.
    fn fatal_set(callback: infer_llama_fatal_callback);

    /// llama.cpp's clock, in microseconds.
    fn time_us() -> i64;

    /// What this build can do at most.
    fn limits(out: *mut infer_llama_limits, error: *mut infer_llama_error) -> i32;

    /// The CPU features in use, in words.
    fn system_info(buf: *mut c_char, cap: usize, len: *mut usize, error: *mut infer_llama_error) -> i32;

    /// Number of devices.
    fn device_count() -> usize;

    /// One device.
    fn device_info(index: usize, out: *mut infer_llama_device, error: *mut infer_llama_error) -> i32;

    /// The defaults for loading.
    fn model_default_params(out: *mut llama_model_params);

    /// Loads a model by path; finds the other parts of a split file by its name.
    fn model_load_from_file(
        path: *const c_char,
        params: *const llama_model_params,
        out: *mut *mut llama_model,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Loads a model by the paths of its parts, in order.
    fn model_load_from_splits(
        paths: *const *const c_char,
        n_paths: usize,
        params: *const llama_model_params,
        out: *mut *mut llama_model,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Loads a model from an open file, which stays the caller's.
    fn model_load_from_fd(
        fd: i32,
        params: *const llama_model_params,
        out: *mut *mut llama_model,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Frees a model and the adapters it still has.
    fn model_free(model: *mut llama_model);

    /// Dimensions and kind of a model.
    fn model_info(model: *const llama_model, out: *mut infer_llama_model_info, error: *mut infer_llama_error) -> i32;

    /// A short description of a model.
    fn model_desc(
        model: *const llama_model,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Number of metadata pairs.
    fn model_meta_count(model: *const llama_model) -> i32;

    /// Key of a metadata pair.
    fn model_meta_key(
        model: *const llama_model,
        index: i32,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Value of a metadata pair, as text.
    fn model_meta_val(
        model: *const llama_model,
        index: i32,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// A chat template, or NULL.
    fn model_chat_template(
        model: *const llama_model,
        name: *const c_char,
        out: *mut *const c_char,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Label of a classifier output, or NULL.
    fn model_cls_label(
        model: *const llama_model,
        index: u32,
        out: *mut *const c_char,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Name of a quantisation.
    fn ftype_name(ftype: i32) -> *const c_char;

    /// The device of each layer, the output layer last.
    fn model_layer_devices(
        model: *const llama_model,
        out: *mut ggml_backend_dev_t,
        cap: usize,
        n: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// The vocabulary of a model.
    fn model_vocab(model: *const llama_model) -> *const llama_vocab;

    /// Special tokens, kind and size of a vocabulary.
    fn vocab_info(vocab: *const llama_vocab, out: *mut infer_llama_vocab_info, error: *mut infer_llama_error) -> i32;

    /// One token of a vocabulary.
    fn vocab_token(
        vocab: *const llama_vocab,
        token: i32,
        out: *mut infer_llama_token_info,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Text to tokens.
    fn tokenize(
        vocab: *const llama_vocab,
        text: *const c_char,
        text_len: usize,
        tokens: *mut i32,
        cap: usize,
        add_special: bool,
        parse_special: bool,
        n: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// One token to bytes.
    fn token_to_piece(
        vocab: *const llama_vocab,
        token: i32,
        special: bool,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Tokens to bytes, spaces cleaned as the model asks.
    fn detokenize(
        vocab: *const llama_vocab,
        tokens: *const i32,
        n_tokens: usize,
        remove_special: bool,
        unparse_special: bool,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// The defaults for contexts.
    fn context_default_params(out: *mut llama_context_params);

    /// A new context on a model.
    fn context_new(
        model: *mut llama_model,
        params: *const llama_context_params,
        out: *mut *mut llama_context,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Frees a context.
    fn context_free(context: *mut llama_context);

    /// Limits and settings of a context.
    fn context_info(
        context: *const llama_context,
        out: *mut infer_llama_context_info,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Threads for passes of one token, and of several.
    fn set_threads(
        context: *mut llama_context,
        n_threads: i32,
        n_threads_batch: i32,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Whether passes yield embeddings.
    fn set_embeddings(context: *mut llama_context, on: bool, error: *mut infer_llama_error) -> i32;

    /// Whether a token attends only to those before it.
    fn set_causal_attn(context: *mut llama_context, on: bool, error: *mut infer_llama_error) -> i32;

    /// Who is asked whether a running pass shall end.
    fn set_abort_callback(
        context: *mut llama_context,
        callback: ggml_abort_callback,
        user_data: *mut c_void,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Threads that outlive a pass.
    fn threadpool_new(
        n_threads: i32,
        poll: u32,
        out: *mut *mut ggml_threadpool,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Ends the threads of a pool.
    fn threadpool_free(pool: *mut ggml_threadpool);

    /// Has a context use pools, or none.
    fn threadpool_attach(
        context: *mut llama_context,
        pool: *mut ggml_threadpool,
        batch: *mut ggml_threadpool,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Bytes in use, a row for each kind of buffer.
    fn memory_breakdown(
        context: *const llama_context,
        out: *mut infer_llama_memory,
        cap: usize,
        n: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// One pass of the decoder.
    fn decode(
        context: *mut llama_context,
        batch: *const llama_batch,
        result: *mut i32,
        error: *mut infer_llama_error,
    ) -> i32;

    /// One pass of the encoder.
    fn encode(
        context: *mut llama_context,
        batch: *const llama_batch,
        result: *mut i32,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Waits for the pass to end.
    fn synchronize(context: *mut llama_context, error: *mut infer_llama_error) -> i32;

    /// A row of logits of the last pass.
    fn logits(
        context: *mut llama_context,
        index: i32,
        out: *mut *const f32,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// A row of embeddings of the last pass.
    fn embeddings(
        context: *mut llama_context,
        index: i32,
        out: *mut *const f32,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// The pooled embedding of a sequence.
    fn embeddings_seq(
        context: *mut llama_context,
        seq: i32,
        out: *mut *const f32,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Empties the memory.
    fn memory_clear(context: *mut llama_context, data: bool, error: *mut infer_llama_error) -> i32;

    /// Cuts positions out of a sequence.
    fn memory_seq_rm(
        context: *mut llama_context,
        seq: i32,
        p0: i32,
        p1: i32,
        removed: *mut bool,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Shares or copies positions of a sequence with another.
    fn memory_seq_cp(
        context: *mut llama_context,
        from: i32,
        to: i32,
        p0: i32,
        p1: i32,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Shifts positions of a sequence.
    fn memory_seq_add(
        context: *mut llama_context,
        seq: i32,
        p0: i32,
        p1: i32,
        delta: i32,
        error: *mut infer_llama_error,
    ) -> i32;

    /// First position of a sequence.
    fn memory_seq_pos_min(context: *mut llama_context, seq: i32, pos: *mut i32, error: *mut infer_llama_error) -> i32;

    /// Last position of a sequence.
    fn memory_seq_pos_max(context: *mut llama_context, seq: i32, pos: *mut i32, error: *mut infer_llama_error) -> i32;

    /// Carries out what is put off until the next pass.
    fn memory_update(context: *mut llama_context, error: *mut infer_llama_error) -> i32;

    /// Bytes of the saved state of a sequence.
    fn state_seq_size(
        context: *mut llama_context,
        seq: i32,
        flags: u32,
        size: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Saves the state of a sequence.
    fn state_seq_get(
        context: *mut llama_context,
        seq: i32,
        flags: u32,
        buf: *mut u8,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Restores the state of a sequence.
    fn state_seq_set(
        context: *mut llama_context,
        seq: i32,
        flags: u32,
        buf: *const u8,
        len: usize,
        used: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Gives the state of a sequence piece by piece.
    fn state_seq_write(
        context: *mut llama_context,
        seq: i32,
        callback: infer_llama_write_callback,
        user_data: *mut c_void,
        len: *mut u64,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Takes the state of a sequence piece by piece.
    fn state_seq_read(
        context: *mut llama_context,
        seq: i32,
        last: i32,
        callback: infer_llama_read_callback,
        user_data: *mut c_void,
        len: *mut u64,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Loads a LoRA adapter for a model.
    fn adapter_load(
        model: *mut llama_model,
        path: *const c_char,
        out: *mut *mut llama_adapter_lora,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Frees an adapter.
    fn adapter_free(adapter: *mut llama_adapter_lora);

    /// Number of metadata pairs of an adapter.
    fn adapter_meta_count(adapter: *const llama_adapter_lora) -> i32;

    /// Key of a metadata pair of an adapter.
    fn adapter_meta_key(
        adapter: *const llama_adapter_lora,
        index: i32,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Value of a metadata pair of an adapter, as text.
    fn adapter_meta_val(
        adapter: *const llama_adapter_lora,
        index: i32,
        buf: *mut c_char,
        cap: usize,
        len: *mut usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// The adapters of the passes to come.
    fn adapters_set(
        context: *mut llama_context,
        adapters: *const *mut llama_adapter_lora,
        scales: *const f32,
        n: usize,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Loads a LoRA adapter for a model from an open file.
    fn adapter_load_from_fd(
        model: *mut llama_model,
        fd: i32,
        out: *mut *mut llama_adapter_lora,
        error: *mut infer_llama_error,
    ) -> i32;

    /// A way to draw tokens in the graph.
    fn sampler_new(
        greedy: bool,
        min_p: bool,
        candidates: u32,
        out: *mut *mut infer_llama_sampler,
        error: *mut infer_llama_error,
    ) -> i32;

    /// Frees a sampler.
    fn sampler_free(sampler: *mut infer_llama_sampler);

    /// Has tokens of a sequence drawn in the graph, or no more.
    fn sampler_attach(
        context: *mut llama_context,
        seq: i32,
        sampler: *mut infer_llama_sampler,
        error: *mut infer_llama_error,
    ) -> i32;

    /// What the next draw uses.
    fn sampler_inputs(
        sampler: *mut infer_llama_sampler,
        uniform: f32,
        scale: f32,
        least: f32,
        top_k: u32,
        error: *mut infer_llama_error,
    ) -> i32;

    /// The token that was drawn at a position of the last batch.
    fn sampled(
        context: *mut llama_context,
        index: i32,
        token: *mut i32,
        logprob: *mut f32,
        error: *mut infer_llama_error,
    ) -> i32;
}
