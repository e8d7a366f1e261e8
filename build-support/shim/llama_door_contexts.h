// Entries: contexts, their passes, their memory and its saved state.
#ifndef INFER_LLAMA_DOOR_CONTEXTS_H
#define INFER_LLAMA_DOOR_CONTEXTS_H

#include "llama_door_wall.h"

#include "ggml-cpu.h"

#include <limits>
#include <memory>
#include <mutex>
#include <unordered_map>

// For llama_get_memory_breakdown: C++, declared unstable and not installed, so that a llama.cpp of the system lacks it.
#if __has_include("llama-ext.h")
#    include "llama-ext.h"
#    define INFER_LLAMA_HAS_BREAKDOWN 1
#else
#    define INFER_LLAMA_HAS_BREAKDOWN 0
#endif

namespace {

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

// 0 is the model's own. Any other number is taken in silence, and positions turn into nonsense.
void check_rope(const char * name, float value) {
    if (!(value >= 0.0f && value <= std::numeric_limits<float>::max())) {
        refuse(std::string(name) + " " + std::to_string(value) + " is neither 0 nor a positive number");
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
    check_rope("rope_freq_base", p.rope_freq_base);
    check_rope("rope_freq_scale", p.rope_freq_scale);
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

// What a context polls while it computes: its user's callback, and whether the process ends.
struct Poll {
    ggml_abort_callback callback;
    void *              user_data;
};

bool poll(void * data) {
    const Poll & poll = *static_cast<const Poll *>(data);
    return process_ends() || (poll.callback != nullptr && poll.callback(poll.user_data));
}

// The polls of all contexts. Never destroyed: contexts may be alive when static objects are not.
struct Polls {
    std::mutex                                                  guard;
    std::unordered_map<llama_context *, std::unique_ptr<Poll>> of;
};

Polls & polls() {
    static Polls & all = *new Polls;
    return all;
}

void give_row(const float ** out, size_t * len, const float * row, size_t n) {
    if (row == nullptr) {
        failed("there is no such row");
    }
    *out = row;
    *len = n;
}

} // namespace

extern "C" {

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
        auto own = std::make_unique<Poll>(Poll { params->abort_callback, params->abort_callback_data });
        llama_context_params polled = *params;
        polled.abort_callback       = poll;
        polled.abort_callback_data  = own.get();
        std::unique_ptr<llama_context, decltype(&llama_free)> context(llama_init_from_model(model, polled), llama_free);
        if (context == nullptr) {
            failed("the context could not be made");
        }
        const std::lock_guard<std::mutex> held(polls().guard);
        polls().of[context.get()] = std::move(own);
        *out = context.release();
    });
}

static void door_context_free(struct llama_context * context) {
    wall(nullptr, [=] {
        // Taken out before the address can be another context's, and kept until this one is gone.
        const auto own = [=] {
            const std::lock_guard<std::mutex> held(polls().guard);
            return polls().of.extract(context);
        }();
        llama_free(context);
    });
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
    return wall(error, [=] {
        needed(context, "context");
        const std::lock_guard<std::mutex> held(polls().guard);
        *polls().of.at(context) = Poll { callback, user_data };
    });
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
        // Sequences with cells of their own share none: copied is the whole, and a part is an assertion.
        if (from != to && llama_n_ctx_seq(context) != llama_n_ctx(context) && (p0 > 0 || p1 >= 0)) {
            throw Refused { INFER_LLAMA_UNSUPPORTED, "cells of their own are copied for a whole sequence only" };
        }
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

} // extern "C"

#endif // INFER_LLAMA_DOOR_CONTEXTS_H
