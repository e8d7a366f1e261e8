// The table behind `infer_llama_api`: llama_door.h says what each entry promises.
//
// Two defences stand in front of every call. `wall` turns an exception into a status, because one that reached Rust would end the process.
// `Refused` turns an argument on which llama.cpp is known to abort or read out of bounds into a status. All of llama.cpp's
// aborts cannot be foreseen from here; the ones that can are.

#include "llama_door.h"

#include "ggml-cpu.h"

// For llama_get_memory_breakdown: C++, declared unstable and not installed, so that a llama.cpp of the system lacks it.
#if __has_include("llama-ext.h")
#    include "llama-ext.h"
#    define INFER_LLAMA_HAS_BREAKDOWN 1
#else
#    define INFER_LLAMA_HAS_BREAKDOWN 0
#endif

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#if defined(_WIN32)
#    include <io.h>
#else
#    include <unistd.h>
#endif

#ifndef INFER_LLAMA_COMMIT
#    error "define INFER_LLAMA_COMMIT: the pinned commit of llama.cpp, as a string"
#endif

#ifndef INFER_LLAMA_VARIANT
#    define INFER_LLAMA_VARIANT "cpu"
#endif

namespace {

// A status with a message, thrown inside the wall only.
struct Refused {
    int32_t     status;
    std::string message;
};

[[noreturn]] void refuse(std::string message) {
    throw Refused { INFER_LLAMA_ARGUMENT, std::move(message) };
}

[[noreturn]] void failed(const char * what) {
    throw Refused { INFER_LLAMA_FAILED, std::string(what) + "; the reason, if there is one, is in llama.cpp's log" };
}

[[noreturn]] void system_error(const char * what) {
    throw Refused { INFER_LLAMA_IO, std::string(what) + ": " + std::strerror(errno) };
}

// Must not throw: it runs while an exception is being handled.
int32_t report(infer_llama_error * error, int32_t status, const char * message) noexcept {
    if (error == nullptr) {
        return status;
    }
    error->code = status;
    size_t len = std::strlen(message);
    if (len >= sizeof(error->message)) {
        len = sizeof(error->message) - 1;
        // Back to the start of the character that was cut: continuation bytes are 10xxxxxx.
        while (len > 0 && (static_cast<unsigned char>(message[len]) & 0xC0) == 0x80) {
            --len;
        }
    }
    std::memcpy(error->message, message, len);
    error->message[len] = '\0';
    return status;
}

template <typename F>
int32_t wall(infer_llama_error * error, F && body) noexcept {
    try {
        body();
        return INFER_LLAMA_OK;
    } catch (const Refused & e) {
        return report(error, e.status, e.message.c_str());
    } catch (const std::bad_alloc & e) {
        return report(error, INFER_LLAMA_MEMORY, e.what());
    } catch (const std::length_error & e) {
        return report(error, INFER_LLAMA_MEMORY, e.what());
    } catch (const std::exception & e) {
        return report(error, INFER_LLAMA_EXCEPTION, e.what());
    } catch (...) {
        return report(error, INFER_LLAMA_UNKNOWN, "a C++ exception of unknown type");
    }
}

template <typename T>
T & needed(T * pointer, const char * name) {
    if (pointer == nullptr) {
        refuse(std::string(name) + " is NULL");
    }
    return *pointer;
}

// ---- buffers ----

int32_t clamped(size_t cap) {
    return cap > INT32_MAX ? INT32_MAX : static_cast<int32_t>(cap);
}

// The shape of llama.cpp's own string getters: the length without the NUL, whatever the buffer holds; negative on failure.
template <typename F>
void fill_string(char * buf, size_t cap, size_t * len, const char * what, F && get) {
    size_t & out = needed(len, "len");
    // snprintf fails on a size over INT_MAX, however short the text.
    const int32_t n = buf == nullptr ? get(nullptr, 0) : get(buf, clamped(cap));
    if (n < 0) {
        failed(what);
    }
    out = static_cast<size_t>(n);
    if (buf == nullptr || out >= cap) {
        throw Refused { INFER_LLAMA_TOO_SMALL, "the buffer holds less than the string and its NUL" };
    }
}

// The shape of llama.cpp's tokenizer: a count, or the negative of the count wanted.
void fill_counted(int32_t n, size_t * out, const char * what) {
    if (n == INT32_MIN) {
        refuse(std::string(what) + ": the result has more than 2^31 elements");
    }
    *out = static_cast<size_t>(n < 0 ? -n : n);
    if (n < 0) {
        throw Refused { INFER_LLAMA_TOO_SMALL, std::string(what) + ": the buffer is too small" };
    }
}

// ---- checks ----

void check_token(const llama_vocab & vocab, int32_t token) {
    if (llama_vocab_type(&vocab) == LLAMA_VOCAB_TYPE_NONE) {
        throw Refused { INFER_LLAMA_UNSUPPORTED, "the model has no vocabulary" };
    }
    const int32_t n = llama_vocab_n_tokens(&vocab);
    if (token < 0 || token >= n) {
        refuse("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(n));
    }
}

void check_seq(const llama_context & context, int32_t seq) {
    const uint32_t n = llama_n_seq_max(&context);
    if (seq < 0 || static_cast<uint32_t>(seq) >= n) {
        refuse("sequence " + std::to_string(seq) + " is outside the " + std::to_string(n) + " the context was made for");
    }
}

void check_threads(const char * name, int32_t n) {
    if (n < 1 || n > GGML_MAX_N_THREADS) {
        refuse(std::string(name) + " " + std::to_string(n) + " is outside 1..=" + std::to_string(GGML_MAX_N_THREADS));
    }
}

void check_flags(uint32_t flags) {
    // State kept on a device asserts when it is restored from another sequence, and is of no use outside the process.
    if ((flags & ~static_cast<uint32_t>(LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)) != 0) {
        refuse("unknown sequence state flags " + std::to_string(flags));
    }
}

// Those that llama.cpp's own tools offer. Others end in a clean NULL, but I8 and Q8_1 in a segmentation fault.
void check_cache_type(const char * name, ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32:
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
        case GGML_TYPE_Q8_0:
        case GGML_TYPE_Q4_0:
        case GGML_TYPE_Q4_1:
        case GGML_TYPE_IQ4_NL:
        case GGML_TYPE_Q5_0:
        case GGML_TYPE_Q5_1:
            return;
        default:
            refuse(std::string(name) + " " + std::to_string(static_cast<int>(type)) + " is not a type a KV cache can have");
    }
}

void check_context_params(const llama_context_params & p) {
    const size_t max_sequences = llama_max_parallel_sequences();
    if (p.n_seq_max < 1 || p.n_seq_max > max_sequences) {
        refuse("n_seq_max " + std::to_string(p.n_seq_max) + " is outside 1..=" + std::to_string(max_sequences));
    }
    if (p.n_batch < 1 || p.n_batch > INT32_MAX) {
        refuse("n_batch " + std::to_string(p.n_batch) + " is outside 1..=2147483647");
    }
    if (p.n_ubatch < 1 || p.n_ubatch > INT32_MAX) {
        refuse("n_ubatch " + std::to_string(p.n_ubatch) + " is outside 1..=2147483647");
    }
    // Room for one output a sequence is reserved at once, and asserted to be within the maximum.
    const uint32_t outputs = p.n_outputs_max == 0 ? p.n_batch : p.n_outputs_max;
    if (outputs < p.n_seq_max) {
        refuse("n_outputs_max (or n_batch, its default) " + std::to_string(outputs) + " is less than n_seq_max " +
               std::to_string(p.n_seq_max));
    }
    check_threads("n_threads", p.n_threads);
    check_threads("n_threads_batch", p.n_threads_batch);
    if (p.pooling_type < LLAMA_POOLING_TYPE_UNSPECIFIED || p.pooling_type > LLAMA_POOLING_TYPE_RANK) {
        refuse("pooling_type " + std::to_string(static_cast<int>(p.pooling_type)) + " is not one");
    }
    check_cache_type("type_k", p.type_k);
    check_cache_type("type_v", p.type_v);
    if (p.samplers != nullptr || p.n_samplers != 0) {
        refuse("samplers in the graph are not offered by this door");
    }
    if (p.ctx_other != nullptr) {
        refuse("contexts that borrow from another are not offered by this door");
    }
}

enum class Pass { encode, decode };

void check_batch(llama_context & context, const llama_batch & batch, Pass pass) {
    if ((batch.token == nullptr) == (batch.embd == nullptr)) {
        refuse("a batch has either token or embd");
    }
    if (batch.pos == nullptr || batch.n_seq_id == nullptr || batch.seq_id == nullptr) {
        refuse("a batch needs pos, n_seq_id and seq_id");
    }
    const int64_t n       = batch.n_tokens;
    const bool    whole   = pass == Pass::encode || llama_get_memory(&context) == nullptr || !llama_get_causal_attn(&context);
    const int64_t n_batch = llama_n_batch(&context);
    if (n > n_batch) {
        refuse("a batch of " + std::to_string(n) + " tokens is over n_batch " + std::to_string(n_batch));
    }
    const int64_t n_ubatch = llama_n_ubatch(&context);
    if (whole && n > n_ubatch) {
        refuse("a batch of " + std::to_string(n) + " tokens is over n_ubatch " + std::to_string(n_ubatch) +
               " and this pass cannot be cut");
    }
}

// ---- fatal errors ----

// With a callback set, ggml prints no backtrace and starts no debugger; this one does the rest of what ggml would.
void fatal_to_stderr(const char * message) {
    std::fprintf(stderr, "%s\n", message);
}

// ---- open files ----

struct CloseFile {
    void operator()(FILE * file) const { std::fclose(file); }
};

using File = std::unique_ptr<FILE, CloseFile>;

File file_of(int32_t fd) {
#if defined(_WIN32)
    const int copy = _dup(fd);
#else
    const int copy = dup(fd);
#endif
    if (copy < 0) {
        system_error("cannot duplicate the file descriptor");
    }
#if defined(_WIN32)
    File file(_fdopen(copy, "rb"));
#else
    File file(fdopen(copy, "rb"));
#endif
    if (!file) {
        const int saved = errno;
#if defined(_WIN32)
        _close(copy);
#else
        close(copy);
#endif
        errno = saved;
        system_error("cannot open a stream on the file descriptor");
    }
    if (std::fseek(file.get(), 0, SEEK_SET) != 0) {
        system_error("cannot seek to the start of the file");
    }
    return file;
}

void give(llama_model ** out, llama_model * model) {
    if (model == nullptr) {
        failed("the model could not be loaded");
    }
    *out = model;
}

void give_row(const float ** out, size_t * len, const float * row, size_t n) {
    if (row == nullptr) {
        failed("there is no such row");
    }
    *out = row;
    *len = n;
}

#define INFER_STRUCT(type) { #type, "", 0, sizeof(type) }
#define INFER_FIELD(type, field) { #type, #field, offsetof(type, field), sizeof(static_cast<type *>(nullptr)->field) }

const infer_llama_field FIELDS[] = {
    INFER_STRUCT(infer_llama_error),
    INFER_FIELD(infer_llama_error, code),
    INFER_FIELD(infer_llama_error, message),
    INFER_STRUCT(llama_model_params),
    INFER_FIELD(llama_model_params, devices),
    INFER_FIELD(llama_model_params, tensor_buft_overrides),
    INFER_FIELD(llama_model_params, n_gpu_layers),
    INFER_FIELD(llama_model_params, split_mode),
    INFER_FIELD(llama_model_params, load_mode),
    INFER_FIELD(llama_model_params, lazy_mode),
    INFER_FIELD(llama_model_params, main_gpu),
    INFER_FIELD(llama_model_params, tensor_split),
    INFER_FIELD(llama_model_params, progress_callback),
    INFER_FIELD(llama_model_params, progress_callback_user_data),
    INFER_FIELD(llama_model_params, kv_overrides),
    INFER_FIELD(llama_model_params, vocab_only),
    INFER_FIELD(llama_model_params, check_tensors),
    INFER_FIELD(llama_model_params, use_extra_bufts),
    INFER_FIELD(llama_model_params, no_host),
    INFER_FIELD(llama_model_params, no_alloc),
    INFER_FIELD(llama_model_params, load_mtp),
    INFER_STRUCT(llama_context_params),
    INFER_FIELD(llama_context_params, n_ctx),
    INFER_FIELD(llama_context_params, n_batch),
    INFER_FIELD(llama_context_params, n_ubatch),
    INFER_FIELD(llama_context_params, n_seq_max),
    INFER_FIELD(llama_context_params, n_rs_seq),
    INFER_FIELD(llama_context_params, n_outputs_max),
    INFER_FIELD(llama_context_params, n_outputs_max_per_seq),
    INFER_FIELD(llama_context_params, n_threads),
    INFER_FIELD(llama_context_params, n_threads_batch),
    INFER_FIELD(llama_context_params, ctx_type),
    INFER_FIELD(llama_context_params, rope_scaling_type),
    INFER_FIELD(llama_context_params, pooling_type),
    INFER_FIELD(llama_context_params, attention_type),
    INFER_FIELD(llama_context_params, flash_attn_type),
    INFER_FIELD(llama_context_params, rope_freq_base),
    INFER_FIELD(llama_context_params, rope_freq_scale),
    INFER_FIELD(llama_context_params, yarn_ext_factor),
    INFER_FIELD(llama_context_params, yarn_attn_factor),
    INFER_FIELD(llama_context_params, yarn_beta_fast),
    INFER_FIELD(llama_context_params, yarn_beta_slow),
    INFER_FIELD(llama_context_params, yarn_orig_ctx),
    INFER_FIELD(llama_context_params, defrag_thold),
    INFER_FIELD(llama_context_params, cb_eval),
    INFER_FIELD(llama_context_params, cb_eval_user_data),
    INFER_FIELD(llama_context_params, type_k),
    INFER_FIELD(llama_context_params, type_v),
    INFER_FIELD(llama_context_params, abort_callback),
    INFER_FIELD(llama_context_params, abort_callback_data),
    INFER_FIELD(llama_context_params, embeddings),
    INFER_FIELD(llama_context_params, offload_kqv),
    INFER_FIELD(llama_context_params, no_perf),
    INFER_FIELD(llama_context_params, op_offload),
    INFER_FIELD(llama_context_params, swa_full),
    INFER_FIELD(llama_context_params, kv_unified),
    INFER_FIELD(llama_context_params, samplers),
    INFER_FIELD(llama_context_params, n_samplers),
    INFER_FIELD(llama_context_params, ctx_other),
    INFER_STRUCT(llama_batch),
    INFER_FIELD(llama_batch, n_tokens),
    INFER_FIELD(llama_batch, token),
    INFER_FIELD(llama_batch, embd),
    INFER_FIELD(llama_batch, pos),
    INFER_FIELD(llama_batch, n_seq_id),
    INFER_FIELD(llama_batch, seq_id),
    INFER_FIELD(llama_batch, logits),
    INFER_STRUCT(llama_model_kv_override),
    INFER_FIELD(llama_model_kv_override, tag),
    INFER_FIELD(llama_model_kv_override, key),
    INFER_FIELD(llama_model_kv_override, val_i64),
    INFER_STRUCT(infer_llama_limits),
    INFER_FIELD(infer_llama_limits, max_devices),
    INFER_FIELD(infer_llama_limits, max_sequences),
    INFER_FIELD(infer_llama_limits, max_threads),
    INFER_FIELD(infer_llama_limits, supports_mmap),
    INFER_FIELD(infer_llama_limits, supports_mlock),
    INFER_FIELD(infer_llama_limits, supports_gpu_offload),
    INFER_FIELD(infer_llama_limits, supports_rpc),
    INFER_STRUCT(infer_llama_device),
    INFER_FIELD(infer_llama_device, handle),
    INFER_FIELD(infer_llama_device, name),
    INFER_FIELD(infer_llama_device, description),
    INFER_FIELD(infer_llama_device, id),
    INFER_FIELD(infer_llama_device, backend),
    INFER_FIELD(infer_llama_device, type),
    INFER_FIELD(infer_llama_device, memory_free),
    INFER_FIELD(infer_llama_device, memory_total),
    INFER_STRUCT(infer_llama_model_info),
    INFER_FIELD(infer_llama_model_info, n_ctx_train),
    INFER_FIELD(infer_llama_model_info, n_embd),
    INFER_FIELD(infer_llama_model_info, n_embd_inp),
    INFER_FIELD(infer_llama_model_info, n_embd_out),
    INFER_FIELD(infer_llama_model_info, n_layer),
    INFER_FIELD(infer_llama_model_info, n_head),
    INFER_FIELD(infer_llama_model_info, n_head_kv),
    INFER_FIELD(infer_llama_model_info, n_swa),
    INFER_FIELD(infer_llama_model_info, rope_type),
    INFER_FIELD(infer_llama_model_info, rope_freq_scale_train),
    INFER_FIELD(infer_llama_model_info, n_cls_out),
    INFER_FIELD(infer_llama_model_info, ftype),
    INFER_FIELD(infer_llama_model_info, n_params),
    INFER_FIELD(infer_llama_model_info, size),
    INFER_FIELD(infer_llama_model_info, decoder_start_token),
    INFER_FIELD(infer_llama_model_info, has_encoder),
    INFER_FIELD(infer_llama_model_info, has_decoder),
    INFER_FIELD(infer_llama_model_info, is_recurrent),
    INFER_FIELD(infer_llama_model_info, is_hybrid),
    INFER_FIELD(infer_llama_model_info, is_diffusion),
    INFER_STRUCT(infer_llama_vocab_info),
    INFER_FIELD(infer_llama_vocab_info, type),
    INFER_FIELD(infer_llama_vocab_info, n_tokens),
    INFER_FIELD(infer_llama_vocab_info, bos),
    INFER_FIELD(infer_llama_vocab_info, eos),
    INFER_FIELD(infer_llama_vocab_info, eot),
    INFER_FIELD(infer_llama_vocab_info, sep),
    INFER_FIELD(infer_llama_vocab_info, nl),
    INFER_FIELD(infer_llama_vocab_info, pad),
    INFER_FIELD(infer_llama_vocab_info, mask),
    INFER_FIELD(infer_llama_vocab_info, fim_pre),
    INFER_FIELD(infer_llama_vocab_info, fim_suf),
    INFER_FIELD(infer_llama_vocab_info, fim_mid),
    INFER_FIELD(infer_llama_vocab_info, fim_pad),
    INFER_FIELD(infer_llama_vocab_info, fim_rep),
    INFER_FIELD(infer_llama_vocab_info, fim_sep),
    INFER_FIELD(infer_llama_vocab_info, add_bos),
    INFER_FIELD(infer_llama_vocab_info, add_eos),
    INFER_FIELD(infer_llama_vocab_info, add_sep),
    INFER_STRUCT(infer_llama_token_info),
    INFER_FIELD(infer_llama_token_info, text),
    INFER_FIELD(infer_llama_token_info, score),
    INFER_FIELD(infer_llama_token_info, attr),
    INFER_FIELD(infer_llama_token_info, is_eog),
    INFER_FIELD(infer_llama_token_info, is_control),
    INFER_STRUCT(infer_llama_context_info),
    INFER_FIELD(infer_llama_context_info, n_ctx),
    INFER_FIELD(infer_llama_context_info, n_ctx_seq),
    INFER_FIELD(infer_llama_context_info, n_batch),
    INFER_FIELD(infer_llama_context_info, n_ubatch),
    INFER_FIELD(infer_llama_context_info, n_seq_max),
    INFER_FIELD(infer_llama_context_info, n_threads),
    INFER_FIELD(infer_llama_context_info, n_threads_batch),
    INFER_FIELD(infer_llama_context_info, pooling_type),
    INFER_FIELD(infer_llama_context_info, causal_attn),
    INFER_FIELD(infer_llama_context_info, has_memory),
    INFER_FIELD(infer_llama_context_info, can_shift),
    INFER_STRUCT(infer_llama_memory),
    INFER_FIELD(infer_llama_memory, name),
    INFER_FIELD(infer_llama_memory, is_host),
    INFER_FIELD(infer_llama_memory, model),
    INFER_FIELD(infer_llama_memory, context),
    INFER_FIELD(infer_llama_memory, compute),
};

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

// ---- models ----

static void door_model_default_params(struct llama_model_params * out) {
    if (out != nullptr) {
        *out = llama_model_default_params();
    }
}

static int32_t door_model_load_from_file(const char * path, const struct llama_model_params * params, struct llama_model ** out,
                                         infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        give(out, llama_model_load_from_file(&needed(path, "path"), needed(params, "params")));
    });
}

static int32_t door_model_load_from_splits(const char * const * paths, size_t n_paths, const struct llama_model_params * params,
                                           struct llama_model ** out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        if (n_paths == 0) {
            refuse("no paths");
        }
        for (size_t i = 0; i < n_paths; ++i) {
            needed((&needed(paths, "paths"))[i], "a path");
        }
        // llama.cpp only reads the array; its type lacks the const.
        give(out, llama_model_load_from_splits(const_cast<const char **>(paths), n_paths, needed(params, "params")));
    });
}

static int32_t door_model_load_from_fd(int32_t fd, const struct llama_model_params * params, struct llama_model ** out,
                                       infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        // A mapping outlives the stream, so the stream can be closed whatever becomes of the load.
        const File file = file_of(fd);
        give(out, llama_model_load_from_file_ptr(file.get(), needed(params, "params")));
    });
}

static void door_model_free(struct llama_model * model) {
    wall(nullptr, [=] { llama_model_free(model); });
}

static int32_t door_model_info(const struct llama_model * model, infer_llama_model_info * out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        infer_llama_model_info & info = needed(out, "out");
        info.n_ctx_train           = llama_model_n_ctx_train(model);
        info.n_embd                = llama_model_n_embd(model);
        info.n_embd_inp            = llama_model_n_embd_inp(model);
        info.n_embd_out            = llama_model_n_embd_out(model);
        info.n_layer               = llama_model_n_layer(model);
        // Asking for the heads of a layer that is not there aborts.
        info.n_head                = info.n_layer > 0 ? llama_model_n_head(model) : 0;
        info.n_head_kv             = info.n_layer > 0 ? llama_model_n_head_kv(model) : 0;
        info.n_swa                 = llama_model_n_swa(model);
        info.rope_type             = static_cast<int32_t>(llama_model_rope_type(model));
        info.rope_freq_scale_train = llama_model_rope_freq_scale_train(model);
        info.n_cls_out             = llama_model_n_cls_out(model);
        info.ftype                 = static_cast<int32_t>(llama_model_ftype(model));
        info.n_params              = llama_model_n_params(model);
        info.size                  = llama_model_size(model);
        info.decoder_start_token   = llama_model_decoder_start_token(model);
        info.has_encoder           = llama_model_has_encoder(model);
        info.has_decoder           = llama_model_has_decoder(model);
        info.is_recurrent          = llama_model_is_recurrent(model);
        info.is_hybrid             = llama_model_is_hybrid(model);
        info.is_diffusion          = llama_model_is_diffusion(model);
    });
}

static int32_t door_model_desc(const struct llama_model * model, char * buf, size_t cap, size_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        fill_string(buf, cap, len, "no description", [=](char * b, size_t n) { return llama_model_desc(model, b, n); });
    });
}

static int32_t door_model_meta_count(const struct llama_model * model) {
    return model == nullptr ? 0 : llama_model_meta_count(model);
}

static int32_t door_model_meta_key(const struct llama_model * model, int32_t index, char * buf, size_t cap, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_model_meta_key_by_index(model, index, b, n); });
    });
}

static int32_t door_model_meta_val(const struct llama_model * model, int32_t index, char * buf, size_t cap, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_model_meta_val_str_by_index(model, index, b, n); });
    });
}

static int32_t door_model_chat_template(const struct llama_model * model, const char * name, const char ** out,
                                        infer_llama_error * error) {
    return wall(error, [=] { needed(out, "out") = llama_model_chat_template(&needed(model, "model"), name); });
}

static int32_t door_model_cls_label(const struct llama_model * model, uint32_t index, const char ** out, infer_llama_error * error) {
    return wall(error, [=] { needed(out, "out") = llama_model_cls_label(&needed(model, "model"), index); });
}

static const char * door_ftype_name(int32_t ftype) {
    return llama_ftype_name(static_cast<enum llama_ftype>(ftype));
}

// ---- vocabulary ----

static const struct llama_vocab * door_model_vocab(const struct llama_model * model) {
    return model == nullptr ? nullptr : llama_model_get_vocab(model);
}

static int32_t door_vocab_info(const struct llama_vocab * vocab, infer_llama_vocab_info * out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(vocab, "vocab");
        infer_llama_vocab_info & info = needed(out, "out");
        info.type     = static_cast<int32_t>(llama_vocab_type(vocab));
        info.n_tokens = llama_vocab_n_tokens(vocab);
        info.bos      = llama_vocab_bos(vocab);
        info.eos      = llama_vocab_eos(vocab);
        info.eot      = llama_vocab_eot(vocab);
        info.sep      = llama_vocab_sep(vocab);
        info.nl       = llama_vocab_nl(vocab);
        info.pad      = llama_vocab_pad(vocab);
        info.mask     = llama_vocab_mask(vocab);
        info.fim_pre  = llama_vocab_fim_pre(vocab);
        info.fim_suf  = llama_vocab_fim_suf(vocab);
        info.fim_mid  = llama_vocab_fim_mid(vocab);
        info.fim_pad  = llama_vocab_fim_pad(vocab);
        info.fim_rep  = llama_vocab_fim_rep(vocab);
        info.fim_sep  = llama_vocab_fim_sep(vocab);
        info.add_bos  = llama_vocab_get_add_bos(vocab);
        info.add_eos  = llama_vocab_get_add_eos(vocab);
        info.add_sep  = llama_vocab_get_add_sep(vocab);
    });
}

static int32_t door_vocab_token(const struct llama_vocab * vocab, int32_t token, infer_llama_token_info * out,
                                infer_llama_error * error) {
    return wall(error, [=] {
        check_token(needed(vocab, "vocab"), token);
        infer_llama_token_info & info = needed(out, "out");
        info.text       = llama_vocab_get_text(vocab, token);
        info.score      = llama_vocab_get_score(vocab, token);
        info.attr       = static_cast<uint32_t>(llama_vocab_get_attr(vocab, token));
        info.is_eog     = llama_vocab_is_eog(vocab, token);
        info.is_control = llama_vocab_is_control(vocab, token);
    });
}

static int32_t door_tokenize(const struct llama_vocab * vocab, const char * text, size_t text_len, int32_t * tokens, size_t cap,
                             bool add_special, bool parse_special, size_t * n, infer_llama_error * error) {
    return wall(error, [=] {
        needed(vocab, "vocab");
        size_t & out = needed(n, "n");
        if (text_len != 0) {
            needed(text, "text");
        }
        if (text_len > INT32_MAX) {
            refuse("the text has more than 2^31 bytes");
        }
        if (llama_vocab_type(vocab) == LLAMA_VOCAB_TYPE_NONE) {
            throw Refused { INFER_LLAMA_UNSUPPORTED, "the model has no vocabulary" };
        }
        fill_counted(llama_tokenize(vocab, text_len == 0 ? "" : text, static_cast<int32_t>(text_len), tokens,
                                    tokens == nullptr ? 0 : clamped(cap), add_special, parse_special),
                     &out, "tokens");
    });
}

static int32_t door_token_to_piece(const struct llama_vocab * vocab, int32_t token, bool special, char * buf, size_t cap, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        check_token(needed(vocab, "vocab"), token);
        size_t & out = needed(len, "len");
        fill_counted(llama_token_to_piece(vocab, token, buf, buf == nullptr ? 0 : clamped(cap), 0, special), &out, "piece");
    });
}

static int32_t door_detokenize(const struct llama_vocab * vocab, const int32_t * tokens, size_t n_tokens, bool remove_special,
                               bool unparse_special, char * buf, size_t cap, size_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        needed(vocab, "vocab");
        size_t & out = needed(len, "len");
        // llama.cpp adds up the length in 32 bits, and writes where a sum that wrapped around points. No piece is longer than its text or
        // a few bytes.
        int64_t longest = 0;
        for (size_t i = 0; i < n_tokens; ++i) {
            const int32_t token = (&needed(tokens, "tokens"))[i];
            check_token(*vocab, token);
            longest += 16 + static_cast<int64_t>(std::strlen(llama_vocab_get_text(vocab, token)));
        }
        if (longest > INT32_MAX) {
            refuse("the text may have more than 2^31 bytes");
        }
        // It writes behind what it counts when it cleans spaces, so it must not be handed NULL even for nothing.
        char nothing = '\0';
        fill_counted(llama_detokenize(vocab, tokens, static_cast<int32_t>(n_tokens), buf == nullptr ? &nothing : buf,
                                      buf == nullptr ? 0 : clamped(cap), remove_special, unparse_special),
                     &out, "text");
    });
}

// ---- contexts ----

static void door_context_default_params(struct llama_context_params * out) {
    if (out != nullptr) {
        *out = llama_context_default_params();
    }
}

static int32_t door_context_new(struct llama_model * model, const struct llama_context_params * params, struct llama_context ** out,
                                infer_llama_error * error) {
    return wall(error, [=] {
        needed(model, "model");
        needed(out, "out");
        check_context_params(needed(params, "params"));
        llama_context * context = llama_init_from_model(model, *params);
        if (context == nullptr) {
            failed("the context could not be made");
        }
        *out = context;
    });
}

static void door_context_free(struct llama_context * context) {
    wall(nullptr, [=] { llama_free(context); });
}

static int32_t door_context_info(const struct llama_context * context, infer_llama_context_info * out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        infer_llama_context_info & info = needed(out, "out");
        // These two only read; their types lack the const.
        llama_context * reader = const_cast<llama_context *>(context);
        llama_memory_t  memory = llama_get_memory(context);
        info.n_ctx           = llama_n_ctx(context);
        info.n_ctx_seq       = llama_n_ctx_seq(context);
        info.n_batch         = llama_n_batch(context);
        info.n_ubatch        = llama_n_ubatch(context);
        info.n_seq_max       = llama_n_seq_max(context);
        info.n_threads       = llama_n_threads(reader);
        info.n_threads_batch = llama_n_threads_batch(reader);
        info.pooling_type    = static_cast<int32_t>(llama_pooling_type(context));
        info.causal_attn     = llama_get_causal_attn(context);
        info.has_memory      = memory != nullptr;
        info.can_shift       = llama_memory_can_shift(memory);
    });
}

static int32_t door_set_threads(struct llama_context * context, int32_t n_threads, int32_t n_threads_batch, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        check_threads("n_threads", n_threads);
        check_threads("n_threads_batch", n_threads_batch);
        llama_set_n_threads(context, n_threads, n_threads_batch);
    });
}

static int32_t door_set_embeddings(struct llama_context * context, bool on, infer_llama_error * error) {
    return wall(error, [=] { llama_set_embeddings(&needed(context, "context"), on); });
}

static int32_t door_set_causal_attn(struct llama_context * context, bool on, infer_llama_error * error) {
    return wall(error, [=] { llama_set_causal_attn(&needed(context, "context"), on); });
}

static int32_t door_set_abort_callback(struct llama_context * context, ggml_abort_callback callback, void * user_data,
                                       infer_llama_error * error) {
    return wall(error, [=] { llama_set_abort_callback(&needed(context, "context"), callback, user_data); });
}

static int32_t door_threadpool_new(int32_t n_threads, uint32_t poll, struct ggml_threadpool ** out, infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        check_threads("n_threads", n_threads);
        if (poll > 100) {
            refuse("poll " + std::to_string(poll) + " is outside 0..=100");
        }
        ggml_threadpool_params params = ggml_threadpool_params_default(n_threads);
        params.poll = poll;
        ggml_threadpool * pool = ggml_threadpool_new(&params);
        if (pool == nullptr) {
            failed("the threadpool could not be made");
        }
        *out = pool;
    });
}

static void door_threadpool_free(struct ggml_threadpool * pool) {
    wall(nullptr, [=] { ggml_threadpool_free(pool); });
}

static int32_t door_threadpool_attach(struct llama_context * context, struct ggml_threadpool * pool, struct ggml_threadpool * batch,
                                      infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        if (pool == nullptr && batch == nullptr) {
            llama_detach_threadpool(context);
        } else {
            llama_attach_threadpool(context, &needed(pool, "pool"), batch);
        }
    });
}

static int32_t door_memory_breakdown(const struct llama_context * context, infer_llama_memory * out, size_t cap, size_t * n,
                                     infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        size_t & count = needed(n, "n");
        count = 0;
#if INFER_LLAMA_HAS_BREAKDOWN
        for (const auto & [type, data] : llama_get_memory_breakdown(context)) {
            if (out != nullptr && count < cap) {
                out[count].name    = ggml_backend_buft_name(type);
                out[count].is_host = ggml_backend_buft_is_host(type);
                out[count].model   = data.model;
                out[count].context = data.context;
                out[count].compute = data.compute;
            }
            ++count;
        }
#else
        (void) out;
        (void) cap;
        throw Refused { INFER_LLAMA_UNSUPPORTED, "this llama.cpp does not tell what its memory is used for" };
#endif
    });
}

// ---- passes ----

static int32_t door_decode(struct llama_context * context, const struct llama_batch * batch, int32_t * result,
                           infer_llama_error * error) {
    return wall(error, [=] {
        needed(result, "result");
        check_batch(needed(context, "context"), needed(batch, "batch"), Pass::decode);
        *result = llama_decode(context, *batch);
    });
}

static int32_t door_encode(struct llama_context * context, const struct llama_batch * batch, int32_t * result,
                           infer_llama_error * error) {
    return wall(error, [=] {
        needed(result, "result");
        check_batch(needed(context, "context"), needed(batch, "batch"), Pass::encode);
        *result = llama_encode(context, *batch);
    });
}

static int32_t door_synchronize(struct llama_context * context, infer_llama_error * error) {
    return wall(error, [=] { llama_synchronize(&needed(context, "context")); });
}

// llama.cpp counts a negative index from the end, which would hide a mistake here.
static void check_index(int32_t index) {
    if (index < 0) {
        refuse("index " + std::to_string(index) + " is negative");
    }
}

static int32_t door_logits(struct llama_context * context, int32_t index, const float ** out, size_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        needed(out, "out");
        needed(len, "len");
        check_index(index);
        const llama_vocab * vocab = llama_model_get_vocab(llama_get_model(context));
        give_row(out, len, llama_get_logits_ith(context, index), static_cast<size_t>(llama_vocab_n_tokens(vocab)));
    });
}

static int32_t door_embeddings(struct llama_context * context, int32_t index, const float ** out, size_t * len,
                               infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        needed(out, "out");
        needed(len, "len");
        check_index(index);
        give_row(out, len, llama_get_embeddings_ith(context, index),
                 static_cast<size_t>(llama_model_n_embd_out(llama_get_model(context))));
    });
}

static int32_t door_embeddings_seq(struct llama_context * context, int32_t seq, const float ** out, size_t * len,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        needed(out, "out");
        needed(len, "len");
        check_seq(*context, seq);
        const llama_model * model = llama_get_model(context);
        const bool          rank  = llama_pooling_type(context) == LLAMA_POOLING_TYPE_RANK;
        give_row(out, len, llama_get_embeddings_seq(context, seq),
                 rank ? llama_model_n_cls_out(model) : static_cast<size_t>(llama_model_n_embd_out(model)));
    });
}

// ---- memory ----

static int32_t door_memory_clear(struct llama_context * context, bool data, infer_llama_error * error) {
    return wall(error, [=] { llama_memory_clear(llama_get_memory(&needed(context, "context")), data); });
}

static int32_t door_memory_seq_rm(struct llama_context * context, int32_t seq, int32_t p0, int32_t p1, bool * removed,
                                  infer_llama_error * error) {
    return wall(error, [=] {
        needed(removed, "removed");
        needed(context, "context");
        if (seq != -1) {
            check_seq(*context, seq);
        }
        *removed = llama_memory_seq_rm(llama_get_memory(context), seq, p0, p1);
    });
}

static int32_t door_memory_seq_cp(struct llama_context * context, int32_t from, int32_t to, int32_t p0, int32_t p1,
                                  infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), from);
        check_seq(*context, to);
        llama_memory_seq_cp(llama_get_memory(context), from, to, p0, p1);
    });
}

static int32_t door_memory_seq_add(struct llama_context * context, int32_t seq, int32_t p0, int32_t p1, int32_t delta,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        llama_memory_t memory = llama_get_memory(context);
        if (!llama_memory_can_shift(memory)) {
            throw Refused { INFER_LLAMA_UNSUPPORTED, "the positions of this memory cannot be shifted" };
        }
        llama_memory_seq_add(memory, seq, p0, p1, delta);
    });
}

static int32_t door_memory_seq_pos_min(struct llama_context * context, int32_t seq, int32_t * pos, infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        needed(pos, "pos") = llama_memory_seq_pos_min(llama_get_memory(context), seq);
    });
}

static int32_t door_memory_seq_pos_max(struct llama_context * context, int32_t seq, int32_t * pos, infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        needed(pos, "pos") = llama_memory_seq_pos_max(llama_get_memory(context), seq);
    });
}

// ---- the state of one sequence ----

static int32_t door_state_seq_size(struct llama_context * context, int32_t seq, uint32_t flags, size_t * size,
                                   infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        check_flags(flags);
        const size_t n = llama_state_seq_get_size_ext(context, seq, flags);
        if (n == 0) {
            failed("the size of the state could not be found");
        }
        needed(size, "size") = n;
    });
}

static int32_t door_state_seq_get(struct llama_context * context, int32_t seq, uint32_t flags, uint8_t * buf, size_t cap, size_t * len,
                                  infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        check_flags(flags);
        size_t &     out  = needed(len, "len");
        const size_t want = llama_state_seq_get_size_ext(context, seq, flags);
        if (want == 0) {
            failed("the size of the state could not be found");
        }
        if (buf == nullptr || cap < want) {
            out = want;
            throw Refused { INFER_LLAMA_TOO_SMALL, "the buffer holds less than the state" };
        }
        const size_t n = llama_state_seq_get_data_ext(context, buf, cap, seq, flags);
        if (n == 0) {
            failed("the state could not be copied out");
        }
        out = n;
    });
}

static int32_t door_state_seq_set(struct llama_context * context, int32_t seq, uint32_t flags, const uint8_t * buf, size_t len,
                                  size_t * used, infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        check_flags(flags);
        size_t &     out = needed(used, "used");
        const size_t n   = llama_state_seq_set_data_ext(context, &needed(buf, "buf"), len, seq, flags);
        if (n == 0) {
            failed("the state could not be restored");
        }
        out = n;
    });
}

// ---- LoRA adapters ----

static int32_t door_adapter_load(struct llama_model * model, const char * path, struct llama_adapter_lora ** out,
                                 infer_llama_error * error) {
    return wall(error, [=] {
        needed(out, "out");
        llama_adapter_lora * adapter = llama_adapter_lora_init(&needed(model, "model"), &needed(path, "path"));
        if (adapter == nullptr) {
            failed("the adapter could not be loaded");
        }
        *out = adapter;
    });
}

static void door_adapter_free(struct llama_adapter_lora * adapter) {
    wall(nullptr, [=] { llama_adapter_lora_free(adapter); });
}

static int32_t door_adapter_meta_count(const struct llama_adapter_lora * adapter) {
    return adapter == nullptr ? 0 : llama_adapter_meta_count(adapter);
}

static int32_t door_adapter_meta_key(const struct llama_adapter_lora * adapter, int32_t index, char * buf, size_t cap, size_t * len,
                                     infer_llama_error * error) {
    return wall(error, [=] {
        needed(adapter, "adapter");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_adapter_meta_key_by_index(adapter, index, b, n); });
    });
}

static int32_t door_adapter_meta_val(const struct llama_adapter_lora * adapter, int32_t index, char * buf, size_t cap, size_t * len,
                                     infer_llama_error * error) {
    return wall(error, [=] {
        needed(adapter, "adapter");
        fill_string(buf, cap, len, "no metadata of that index",
                    [=](char * b, size_t n) { return llama_adapter_meta_val_str_by_index(adapter, index, b, n); });
    });
}

static int32_t door_adapters_set(struct llama_context * context, struct llama_adapter_lora * const * adapters, const float * scales,
                                 size_t n, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
        for (size_t i = 0; i < n; ++i) {
            needed((&needed(adapters, "adapters"))[i], "an adapter");
        }
        if (n != 0) {
            needed(scales, "scales");
        }
        // llama.cpp only reads the arrays; their types lack the const.
        const int32_t status = llama_set_adapters_lora(context, const_cast<llama_adapter_lora **>(adapters), n,
                                                       const_cast<float *>(scales));
        if (status != 0) {
            failed("the adapters could not be set");
        }
    });
}

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

        t.state_seq_size         = door_state_seq_size;
        t.state_seq_get          = door_state_seq_get;
        t.state_seq_set          = door_state_seq_set;

        t.adapter_load           = door_adapter_load;
        t.adapter_free           = door_adapter_free;
        t.adapter_meta_count     = door_adapter_meta_count;
        t.adapter_meta_key       = door_adapter_meta_key;
        t.adapter_meta_val       = door_adapter_meta_val;
        t.adapters_set           = door_adapters_set;
        return t;
    }();
    return &table;
}

} // extern "C"
