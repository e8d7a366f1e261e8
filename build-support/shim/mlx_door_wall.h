// The wall that every entry stands behind: what is thrown inside becomes a status, and handles are looked at first.
#ifndef INFER_MLX_DOOR_WALL_H
#define INFER_MLX_DOOR_WALL_H

#include "mlx_door.h"
#include "mlx_door_threads.h"

#include "mlx/c/mlx.h"
#include "mlx/memory.h"
#include "mlx/mlx.h"

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using namespace infer_mlx;
using mlx::core::array;
using mlx::core::Shape;

// A status with a message, thrown inside the wall only.
struct Refused {
    int32_t     status;
    std::string message;
};

// mlx-c returned an error: its handler has put the message where it belongs.
struct Said {};

[[noreturn]] void refuse(std::string message) {
    throw Refused { INFER_MLX_ARGUMENT, std::move(message) };
}

thread_local char message_of_this_thread[1024] = "";

// Must not throw: it runs while an exception is being handled.
int32_t report(int32_t status, const char * message) noexcept {
    size_t len = std::strlen(message);
    if (len >= sizeof(message_of_this_thread)) {
        len = sizeof(message_of_this_thread) - 1;
        // Back to the start of the character that was cut: continuation bytes are 10xxxxxx.
        while (len > 0 && (static_cast<unsigned char>(message[len]) & 0xC0) == 0x80) {
            --len;
        }
    }
    std::memcpy(message_of_this_thread, message, len);
    message_of_this_thread[len] = '\0';
    return status;
}

// In the place of the handler that ends the process. mlx-c adds where it was in its own sources, which tells nobody anything.
void on_mlx_error(const char * message, void *) noexcept {
    report(INFER_MLX_EXCEPTION, message);
    for (char * at = message_of_this_thread; (at = std::strstr(at, " at ")) != nullptr; ++at) {
        if (std::strstr(at + 1, " at ") == nullptr && std::strstr(at, ".cpp:") != nullptr) {
            *at = '\0';
            return;
        }
    }
}

// Of what was thrown elsewhere there is only the text: on a stream's thread, or behind mlx-c.
int32_t status_of(const char * message) noexcept {
    return std::strstr(message, "bad_alloc") != nullptr ? INFER_MLX_MEMORY : INFER_MLX_EXCEPTION;
}

template <typename F>
int32_t wall(F && body) noexcept {
    try {
        const Visit visit;
        if (!visit.inside()) {
            return report(INFER_MLX_ENDING, "the thread or the process is ending");
        }
        visit.home().sweep();
        body(visit.home());
        return INFER_MLX_OK;
    } catch (const Refused & e) {
        return report(e.status, e.message.c_str());
    } catch (const Said &) {
        return status_of(message_of_this_thread);
    } catch (const std::bad_alloc & e) {
        return report(INFER_MLX_MEMORY, e.what());
    } catch (const std::length_error & e) {
        return report(INFER_MLX_MEMORY, e.what());
    } catch (const std::exception & e) {
        return report(status_of(e.what()), e.what());
    } catch (...) {
        return report(INFER_MLX_UNKNOWN, "a C++ exception of unknown type");
    }
}

void check(int status) {
    if (status != 0) {
        throw Said {};
    }
}

template <typename T>
T & needed(T * pointer, const char * name) {
    if (pointer == nullptr) {
        refuse(std::string(name) + " is NULL");
    }
    return *pointer;
}

void needed_list(const void * pointer, size_t count, const char * name) {
    if (pointer == nullptr && count > 0) {
        refuse(std::string(name) + " is NULL");
    }
}

// ---- handles ----

// The array behind a handle of this thread, computed or to be computed by a stream that is still there.
array & belonging(const Home & home, const infer_mlx_array * handle, const char * name) {
    const infer_mlx_array & a = needed(handle, name);
    if (a.home != &home) {
        throw Refused { INFER_MLX_THREAD, std::string(name) + ": an array of another thread; arrays are used by the thread that made them" };
    }
    array & value = const_cast<infer_mlx_array &>(a).value;
    if (a.epoch != home.epoch() && value.status() == array::Status::unscheduled) {
        throw Refused { INFER_MLX_THREAD, std::string(name) + ": an array that was not evaluated before the last stream of its thread was freed" };
    }
    return value;
}

// … which no failure has touched, so that something can be made of it.
array & at_home(const Home & home, const infer_mlx_array * handle, const char * name) {
    array & value = belonging(home, handle, name);
    if (!handle->sound) {
        if (!home.whole(*handle)) {
            throw Refused { INFER_MLX_EXCEPTION, handle->failed ? "the array's computation failed"
                                                                : "a computation failed after the array was made, and may have left it half done" };
        }
        // Evaluated by what was waited for, and that went well.
        handle->sound = value.status() != array::Status::unscheduled && !home.in_flight();
    }
    return value;
}

mlx::core::Stream stream_of(const Home & home, const infer_mlx_stream * handle) {
    const infer_mlx_stream & s = needed(handle, "stream");
    if (s.home != &home || s.epoch != home.epoch()) {
        throw Refused { INFER_MLX_THREAD, "a stream of another thread; streams are used by the thread that made them" };
    }
    return s.value;
}

// mlx-c's handles are pointers to MLX's objects. These are lent, and never freed by it.
mlx_array lent(array & value) {
    return mlx_array { &value };
}

mlx_array lent(const Home & home, const infer_mlx_array * handle, const char * name) {
    return lent(at_home(home, handle, name));
}

mlx_array lent_if(const Home & home, const infer_mlx_array * handle, const char * name) {
    return handle == nullptr ? mlx_array { nullptr } : lent(home, handle, name);
}

// ---- sizes ----

// What MLX takes for its limit when it starts: most of the memory there is.
size_t most_bytes() {
    static const size_t most = mlx::core::get_memory_limit();
    return most;
}

// Bytes of an array of this shape. MLX multiplies without looking, and writes to address 0 where memory was refused.
size_t bytes_of(const Shape & shape, size_t itemsize) {
    size_t bytes = itemsize;
    for (const int32_t n : shape) {
        if (n < 0) {
            refuse("a shape with a negative size");
        }
        if (__builtin_mul_overflow(bytes, static_cast<size_t>(n), &bytes)) {
            throw Refused { INFER_MLX_MEMORY, "an array with more bytes than can be counted" };
        }
    }
    // So small that nobody has to be asked.
    constexpr size_t SMALL = size_t(1) << 24;
    if (bytes > SMALL && bytes > most_bytes()) {
        throw Refused { INFER_MLX_MEMORY, "an array of " + std::to_string(bytes) + " bytes, and MLX's memory limit is " +
                                              std::to_string(most_bytes()) };
    }
    return bytes;
}

Shape shape_of(const int32_t * shape, size_t ndim) {
    needed_list(shape, ndim, "shape");
    return Shape(shape, shape + ndim);
}

mlx::core::Dtype dtype_of(int32_t dtype) {
    using namespace mlx::core;
    static const Dtype types[] = { bool_, uint8, uint16, uint32,  uint64,  int8,     int16,
                                   int32, int64, float16, float32, float64, bfloat16, complex64 };
    if (dtype < 0 || dtype > INFER_MLX_C64) {
        refuse("there is no type " + std::to_string(dtype));
    }
    return types[dtype];
}

mlx_dtype c_dtype(int32_t dtype) {
    dtype_of(dtype);
    return static_cast<mlx_dtype>(dtype);
}

// ---- results ----

infer_mlx_array * kept(Home & home, array value) {
    bytes_of(value.shape(), value.itemsize());
    return home.array_new(std::move(value));
}

// What mlx-c made, taken over from it.
class Result {
public:
    Result() = default;
    ~Result() { mlx_array_free(made_); }

    Result(const Result &)             = delete;
    Result & operator=(const Result &) = delete;

    mlx_array * slot() { return &made_; }
    array &     value() { return *static_cast<array *>(made_.ctx); }

private:
    mlx_array made_ { nullptr };
};

// An operation of mlx-c: `call` is given the place for the result and the stream.
template <typename F>
int32_t operation(infer_mlx_array ** out, const infer_mlx_stream * stream, F && call) noexcept {
    return wall([&](Home & home) {
        infer_mlx_array *& result = needed(out, "out");
        mlx::core::Stream  where  = stream_of(home, stream);
        Result             made;
        check(call(home, made.slot(), mlx_stream { &where }));
        result = kept(home, std::move(made.value()));
    });
}

// As `operation`, with several results.
template <typename F>
int32_t operations(infer_mlx_array ** outs, size_t count, const infer_mlx_stream * stream, F && call) noexcept {
    return wall([&](Home & home) {
        needed(outs, "outs");
        mlx::core::Stream  where = stream_of(home, stream);
        std::vector<array> made;
        mlx_vector_array   slot { &made };
        check(call(home, &slot, mlx_stream { &where }));
        if (made.size() != count) {
            refuse("there are " + std::to_string(made.size()) + " results, and room for " + std::to_string(count));
        }
        std::vector<infer_mlx_array *> handles;
        handles.reserve(count);
        try {
            for (array & value : made) {
                handles.push_back(kept(home, std::move(value)));
            }
        } catch (...) {
            for (infer_mlx_array * handle : handles) {
                home.array_free(handle, true);
            }
            throw;
        }
        std::copy(handles.begin(), handles.end(), outs);
    });
}

} // namespace

#endif // INFER_MLX_DOOR_WALL_H
