// Entries that need llama.cpp's own headers: what is pending in a context's memory, and the state of a sequence piece by piece.
#ifndef INFER_LLAMA_DOOR_STATE_H
#define INFER_LLAMA_DOOR_STATE_H

#include "llama_door_contexts.h"

#include "ggml-backend.h"

#include <algorithm>
#include <vector>

// C++, and not installed: a llama.cpp of the system lacks them.
#if __has_include("llama-context.h")
#    include "llama-context.h"
#    include "llama-io.h"
#    include "llama-kv-cache-iswa.h"
#    include "llama-kv-cache.h"
#    include "llama-memory-hybrid-iswa.h"
#    include "llama-memory-hybrid.h"
#    include "llama-memory-recurrent.h"
#    define INFER_LLAMA_HAS_STATE 1
#else
#    define INFER_LLAMA_HAS_STATE 0
#endif

#if INFER_LLAMA_HAS_STATE

namespace {

// Bytes that are copied at once from or to a device.
constexpr size_t STAGE = 256 * 1024;
// The largest number of 4 bytes that a state can have.
constexpr uint32_t LARGEST = INT32_MAX - 1;

// While it lives, the user of a context does not end what it computes; the end of the process does.
class Unpolled {
public:
    explicit Unpolled(llama_context & context) {
        const std::lock_guard<std::mutex> held(polls().guard);
        poll = polls().of.at(&context).get();
        callback = std::exchange(poll->callback, nullptr);
    }

    ~Unpolled() { poll->callback = callback; }

    Unpolled(const Unpolled &) = delete;
    Unpolled & operator=(const Unpolled &) = delete;

private:
    Poll *              poll;
    ggml_abort_callback callback;
};

// The parts of a memory, in the order in which their states follow each other. Others than these were not looked at: what they make
// of the bytes of a state is not known.
struct Part {
    llama_kv_cache *         attention;
    llama_memory_recurrent * recurrent;
};

std::vector<Part> parts_of(llama_context & context) {
    llama_memory_t memory = context.get_memory();
    if (auto * cache = dynamic_cast<llama_kv_cache *>(memory)) {
        return { { cache, nullptr } };
    }
    if (auto * cache = dynamic_cast<llama_kv_cache_iswa *>(memory)) {
        return { { cache->get_base(), nullptr }, { cache->get_swa(), nullptr } };
    }
    if (auto * recurrent = dynamic_cast<llama_memory_recurrent *>(memory)) {
        return { { nullptr, recurrent } };
    }
    if (auto * hybrid = dynamic_cast<llama_memory_hybrid *>(memory)) {
        return { { hybrid->get_mem_attn(), nullptr }, { nullptr, hybrid->get_mem_recr() } };
    }
    if (auto * hybrid = dynamic_cast<llama_memory_hybrid_iswa *>(memory)) {
        return { { hybrid->get_mem_attn()->get_base(), nullptr },
                 { hybrid->get_mem_attn()->get_swa(), nullptr },
                 { nullptr, hybrid->get_mem_recr() } };
    }
    throw Refused { INFER_LLAMA_UNSUPPORTED, "the state of this kind of memory is not one that this door knows" };
}

// Copies between streams and moved positions, which llama.cpp puts off until the next pass: a state that is read before that has old
// bytes, and one that is written is overwritten. An interrupted move would leave some keys turned and turn them again in the next pass.
void settle(llama_context & context) {
    const std::vector<Part> parts = parts_of(context);
    const Unpolled          unpolled(context);
    context.synchronize();
    context.memory_update(false);
    for (const Part & part : parts) {
        if (part.attention != nullptr && part.attention->get_has_shift()) {
            failed("positions could not be moved");
        }
    }
}

void check_place(const ggml_tensor & tensor, size_t offset, size_t size) {
    const size_t n = ggml_nbytes(&tensor);
    if (offset > n || size > n - offset) {
        failed("a part of a state lies outside of its tensor");
    }
}

// Where a tensor's bytes can be got at, or NULL.
uint8_t * host_bytes(const ggml_tensor & tensor) {
    const ggml_backend_buffer_t buffer = tensor.view_src != nullptr ? tensor.view_src->buffer : tensor.buffer;
    return buffer != nullptr && ggml_backend_buffer_is_host(buffer) ? static_cast<uint8_t *>(tensor.data) : nullptr;
}

// Numbers of a state are of 4 or 8 bytes in the memories that parts_of knows, unless cells have something more (M-RoPE, per-layer
// embeddings looked up by token): there, bytes of a state would be used as an index.
void check_number(size_t size) {
    if (size != sizeof(uint32_t) && size != sizeof(uint64_t)) {
        throw Refused { INFER_LLAMA_UNSUPPORTED, "the state of this model's cells is not one that this door knows" };
    }
}

class StateWriter final : public llama_io_write_i {
public:
    StateWriter(infer_llama_write_callback callback, void * user_data) : callback(callback), user_data(user_data) {}

    void write(const void * src, size_t size) override {
        check_number(size);
        if (filled + size > sizeof(buffer)) {
            flush();
        }
        std::memcpy(buffer + filled, src, size);
        filled += size;
        written += size;
    }

    void write_tensor(ggml_tensor * tensor, size_t offset, size_t size) override {
        flush();
        written += size;
        if (callback == nullptr) {
            return;
        }
        check_place(*tensor, offset, size);
        if (const uint8_t * bytes = host_bytes(*tensor)) {
            give(bytes + offset, size);
            return;
        }
        stage.resize(std::min(size, STAGE));
        for (size_t done = 0; done < size; done += stage.size()) {
            const size_t n = std::min(size - done, stage.size());
            ggml_backend_tensor_get(tensor, stage.data(), offset + done, n);
            give(stage.data(), n);
        }
    }

    size_t n_bytes() override { return written; }

    void flush() {
        if (callback != nullptr && filled > 0) {
            give(buffer, filled);
        }
        filled = 0;
    }

private:
    void give(const uint8_t * bytes, size_t size) {
        if (size > 0 && !callback(bytes, size, user_data)) {
            failed("whoever takes the state has stopped");
        }
    }

    infer_llama_write_callback callback;
    void *                     user_data;
    size_t                     written = 0;
    size_t                     filled  = 0;
    std::vector<uint8_t>       stage;
    uint8_t                    buffer[4096];
};

class StateReader final : public llama_io_read_i {
public:
    StateReader(infer_llama_read_callback callback, void * user_data) : callback(callback), user_data(user_data) {}

    void read(void * dst, size_t size) override {
        guarded([&] {
            check_number(size);
            // llama.cpp reads into variables that it has not initialised, and whoever fills them may be shown what is there.
            std::memset(dst, 0, size);
            take(dst, size);
            if (size == sizeof(uint32_t)) {
                uint32_t number = 0;
                std::memcpy(&number, dst, size);
                // Positions, counts, types. llama.cpp takes a cell at position -1 for an empty one, and removes none at 2^31 - 1: it loses
                // them for ever.
                const uint32_t most = std::exchange(next, LARGEST);
                if (number > most) {
                    failed("the state has a number that is out of range");
                }
            }
        });
    }

    void read_tensor(ggml_tensor * tensor, size_t offset, size_t size) override {
        guarded([&] {
            check_place(*tensor, offset, size);
            if (uint8_t * bytes = host_bytes(*tensor)) {
                take(bytes + offset, size);
                return;
            }
            stage.resize(std::min(size, STAGE));
            for (size_t done = 0; done < size; done += stage.size()) {
                const size_t n = std::min(size - done, stage.size());
                take(stage.data(), n);
                ggml_backend_tensor_set(tensor, stage.data(), offset + done, n);
            }
        });
    }

    size_t n_bytes() override { return taken; }

    // The next number of 4 bytes is at most this.
    void expect_at_most(uint32_t most) { next = most; }

    // llama.cpp replaces what is thrown in here by an exception of its own.
    const Refused & why() const { return refused; }

private:
    template <typename F>
    void guarded(F && body) {
        try {
            body();
        } catch (const Refused & e) {
            refused = e;
            throw;
        }
    }

    void take(void * dst, size_t size) {
        if (size > 0 && !callback(static_cast<uint8_t *>(dst), size, user_data)) {
            failed("whoever gives the state has stopped");
        }
        taken += size;
    }

    infer_llama_read_callback callback;
    void *                    user_data;
    size_t                    taken = 0;
    uint32_t                  next  = LARGEST;
    Refused                   refused { INFER_LLAMA_OK, {} };
    std::vector<uint8_t>      stage;
};

void read_part(const Part & part, StateReader & io, int32_t seq, int32_t last) {
    llama_pos end;
    if (part.attention != nullptr) {
        part.attention->state_read(io, seq, 0);
        end = part.attention->seq_pos_max(seq);
    } else {
        // A sequence has one cell; with more, llama.cpp asserts that they were computed in one pass.
        io.expect_at_most(1);
        part.recurrent->state_read(io, seq, 0);
        end = part.recurrent->seq_pos_max(seq);
    }
    if (end != last) {
        failed("the state does not end at the position it should");
    }
}

} // namespace

#endif // INFER_LLAMA_HAS_STATE

extern "C" {

static int32_t door_memory_update(struct llama_context * context, infer_llama_error * error) {
    return wall(error, [=] {
        needed(context, "context");
#if INFER_LLAMA_HAS_STATE
        settle(*context);
#else
        throw Refused { INFER_LLAMA_UNSUPPORTED, "this llama.cpp does not let its memory be updated" };
#endif
    });
}

static int32_t door_state_seq_write(struct llama_context * context, int32_t seq, infer_llama_write_callback callback, void * user_data,
                                    uint64_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        uint64_t & out = needed(len, "len");
#if INFER_LLAMA_HAS_STATE
        settle(*context);
        StateWriter io(callback, user_data);
        context->get_memory()->state_write(io, seq, 0);
        io.flush();
        out = io.n_bytes();
#else
        (void) callback;
        (void) user_data;
        (void) out;
        throw Refused { INFER_LLAMA_UNSUPPORTED, "this llama.cpp gives states in one piece only" };
#endif
    });
}

static int32_t door_state_seq_read(struct llama_context * context, int32_t seq, int32_t last, infer_llama_read_callback callback,
                                   void * user_data, uint64_t * len, infer_llama_error * error) {
    return wall(error, [=] {
        check_seq(needed(context, "context"), seq);
        uint64_t & out = needed(len, "len");
        if (callback == nullptr) {
            refuse("callback is NULL");
        }
#if INFER_LLAMA_HAS_STATE
        settle(*context);
        StateReader io(callback, user_data);
        try {
            for (const Part & part : parts_of(*context)) {
                read_part(part, io, seq, last);
            }
        } catch (...) {
            // The part that failed has cleared itself. Those before it may have numbers that nobody has verified, and attention reads
            // free cells too.
            for (const Part & part : parts_of(*context)) {
                if (part.attention != nullptr) {
                    part.attention->state_clear(seq);
                }
            }
            context->get_memory()->seq_rm(seq, -1, -1);
            if (io.why().status != INFER_LLAMA_OK) {
                throw io.why();
            }
            throw;
        }
        out = io.n_bytes();
#else
        (void) last;
        (void) user_data;
        (void) out;
        throw Refused { INFER_LLAMA_UNSUPPORTED, "this llama.cpp takes states in one piece only" };
#endif
    });
}

} // extern "C"

#endif // INFER_LLAMA_DOOR_STATE_H
