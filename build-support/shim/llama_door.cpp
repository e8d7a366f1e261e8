// The table behind `infer_llama_api`: llama_door.h says what each entry promises.
//
// Two defences stand in front of every call. `wall` turns an exception into a status, because one that reached Rust would end the process.
// `Refused` turns an argument on which llama.cpp is known to abort or read out of bounds into a status. All of llama.cpp's
// aborts cannot be foreseen from here; the ones that can are.
//
// One translation unit: the other headers of the folder are parts of it, by theme.

#include "llama_door_contexts.h"
#include "llama_door_layout.h"
#include "llama_door_models.h"
#include "llama_door_sampler.h"
#include "llama_door_state.h"
#include "llama_door_wall.h"

#include <cstdio>
#include <mutex>

#ifndef INFER_LLAMA_COMMIT
#    error "define INFER_LLAMA_COMMIT: the pinned commit of llama.cpp, as a string"
#endif

#ifndef INFER_LLAMA_VARIANT
#    define INFER_LLAMA_VARIANT "cpu"
#endif

namespace {

// With a callback set, ggml prints no backtrace and starts no debugger; this one does the rest of what ggml would.
void fatal_to_stderr(const char * message) {
    std::fprintf(stderr, "%s\n", message);
}

} // namespace

extern "C" {

// ---- the process ----

static int32_t door_backend_init(infer_llama_error * error) {
    return wall(error, [] { llama_backend_init(); });
}

static void door_log_set(ggml_log_callback callback, void * user_data) {
    wall(nullptr, [=] { llama_log_set(callback, user_data); });
}

static void door_fatal_set(infer_llama_fatal_callback callback) {
    wall(nullptr, [=] { ggml_set_abort_callback(callback != nullptr ? callback : fatal_to_stderr); });
}

static int64_t door_time_us(void) {
    return llama_time_us();
}

static int32_t door_limits(infer_llama_limits * out, infer_llama_error * error) {
    return wall(error, [=] {
        infer_llama_limits & limits = needed(out, "out");
        limits.max_devices          = static_cast<uint32_t>(llama_max_devices());
        limits.max_sequences        = static_cast<uint32_t>(llama_max_parallel_sequences());
        limits.max_threads          = GGML_MAX_N_THREADS;
        limits.supports_mmap        = llama_supports_mmap();
        limits.supports_mlock       = llama_supports_mlock();
        limits.supports_gpu_offload = llama_supports_gpu_offload();
        limits.supports_rpc         = llama_supports_rpc();
    });
}

static int32_t door_system_info(char * buf, size_t cap, size_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        // llama.cpp builds the text in a static string.
        static std::mutex guard;
        const std::lock_guard<std::mutex> held(guard);
        const char * text = llama_print_system_info();
        fill_string(buf, cap, len, "no system information", [=](char * b, size_t n) { return std::snprintf(b, n, "%s", text); });
    });
}

static size_t door_device_count(void) {
    size_t count = 0;
    wall(nullptr, [&] { count = ggml_backend_dev_count(); });
    return count;
}

static int32_t door_device_info(size_t index, infer_llama_device * out, infer_llama_error * error) {
    return wall(error, [=] {
        infer_llama_device & device = needed(out, "out");
        const size_t n = ggml_backend_dev_count();
        if (index >= n) {
            refuse("device " + std::to_string(index) + " of " + std::to_string(n));
        }
        ggml_backend_dev_t     handle = ggml_backend_dev_get(index);
        ggml_backend_reg_t     reg    = ggml_backend_dev_backend_reg(handle);
        ggml_backend_dev_props props  = {};
        ggml_backend_dev_get_props(handle, &props);
        device.handle       = handle;
        device.name         = props.name;
        device.description  = props.description;
        device.id           = props.device_id;
        device.backend      = reg != nullptr ? ggml_backend_reg_name(reg) : "";
        device.type         = static_cast<int32_t>(props.type);
        device.memory_free  = props.memory_free;
        device.memory_total = props.memory_total;
    });
}

// ---- the table ----

const struct infer_llama_table * infer_llama_api(uint32_t version) {
    if (version != 0 && version != INFER_LLAMA_DOOR_VERSION) {
        return nullptr;
    }
    static const infer_llama_table table = [] {
        // Before anything can fail: else ggml answers its first assertion by forking a debugger and printing to stdout.
        ggml_set_abort_callback(fatal_to_stderr);

        infer_llama_table t = {};
        t.size                   = sizeof(infer_llama_table);
        t.version                = INFER_LLAMA_DOOR_VERSION;
        t.commit                 = INFER_LLAMA_COMMIT;
        t.llama_version          = llama_version();
        t.variant                = INFER_LLAMA_VARIANT;
        t.fields                 = FIELDS;
        t.n_fields               = sizeof(FIELDS) / sizeof(FIELDS[0]);
        t.sizeof_error           = sizeof(infer_llama_error);
        t.sizeof_model_params    = sizeof(llama_model_params);
        t.sizeof_context_params  = sizeof(llama_context_params);
        t.sizeof_batch           = sizeof(llama_batch);
        t.sizeof_kv_override     = sizeof(llama_model_kv_override);
        t.sizeof_limits          = sizeof(infer_llama_limits);
        t.sizeof_device          = sizeof(infer_llama_device);
        t.sizeof_model_info      = sizeof(infer_llama_model_info);
        t.sizeof_vocab_info      = sizeof(infer_llama_vocab_info);
        t.sizeof_token_info      = sizeof(infer_llama_token_info);
        t.sizeof_context_info    = sizeof(infer_llama_context_info);
        t.sizeof_memory          = sizeof(infer_llama_memory);

        t.backend_init           = door_backend_init;
        t.log_set                = door_log_set;
        t.fatal_set              = door_fatal_set;
        t.time_us                = door_time_us;
        t.limits                 = door_limits;
        t.system_info            = door_system_info;
        t.device_count           = door_device_count;
        t.device_info            = door_device_info;

        t.model_default_params   = door_model_default_params;
        t.model_load_from_file   = door_model_load_from_file;
        t.model_load_from_splits = door_model_load_from_splits;
        t.model_load_from_fd     = door_model_load_from_fd;
        t.model_free             = door_model_free;
        t.model_info             = door_model_info;
        t.model_desc             = door_model_desc;
        t.model_meta_count       = door_model_meta_count;
        t.model_meta_key         = door_model_meta_key;
        t.model_meta_val         = door_model_meta_val;
        t.model_chat_template    = door_model_chat_template;
        t.model_cls_label        = door_model_cls_label;
        t.ftype_name             = door_ftype_name;
        t.model_layer_devices    = door_model_layer_devices;

        t.model_vocab            = door_model_vocab;
        t.vocab_info             = door_vocab_info;
        t.vocab_token            = door_vocab_token;
        t.tokenize               = door_tokenize;
        t.token_to_piece         = door_token_to_piece;
        t.detokenize             = door_detokenize;

        t.context_default_params = door_context_default_params;
        t.context_new            = door_context_new;
        t.context_free           = door_context_free;
        t.context_info           = door_context_info;
        t.set_threads            = door_set_threads;
        t.set_embeddings         = door_set_embeddings;
        t.set_causal_attn        = door_set_causal_attn;
        t.set_abort_callback     = door_set_abort_callback;
        t.threadpool_new         = door_threadpool_new;
        t.threadpool_free        = door_threadpool_free;
        t.threadpool_attach      = door_threadpool_attach;
        t.memory_breakdown       = door_memory_breakdown;

        t.decode                 = door_decode;
        t.encode                 = door_encode;
        t.synchronize            = door_synchronize;
        t.logits                 = door_logits;
        t.embeddings             = door_embeddings;
        t.embeddings_seq         = door_embeddings_seq;

        t.memory_clear           = door_memory_clear;
        t.memory_seq_rm          = door_memory_seq_rm;
        t.memory_seq_cp          = door_memory_seq_cp;
        t.memory_seq_add         = door_memory_seq_add;
        t.memory_seq_pos_min     = door_memory_seq_pos_min;
        t.memory_seq_pos_max     = door_memory_seq_pos_max;
        t.memory_update          = door_memory_update;

        t.state_seq_size         = door_state_seq_size;
        t.state_seq_get          = door_state_seq_get;
        t.state_seq_set          = door_state_seq_set;
        t.state_seq_write        = door_state_seq_write;
        t.state_seq_read         = door_state_seq_read;

        t.adapter_load           = door_adapter_load;
        t.adapter_free           = door_adapter_free;
        t.adapter_meta_count     = door_adapter_meta_count;
        t.adapter_meta_key       = door_adapter_meta_key;
        t.adapter_meta_val       = door_adapter_meta_val;
        t.adapters_set           = door_adapters_set;
        t.adapter_load_from_fd   = door_adapter_load_from_fd;

        t.sampler_new            = door_sampler_new;
        t.sampler_free           = door_sampler_free;
        t.sampler_attach         = door_sampler_attach;
        t.sampler_inputs         = door_sampler_inputs;
        t.sampled                = door_sampled;
        return t;
    }();
    return &table;
}

} // extern "C"
