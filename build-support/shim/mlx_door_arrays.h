// Streams, arrays and their evaluation.
#ifndef INFER_MLX_DOOR_ARRAYS_H
#define INFER_MLX_DOOR_ARRAYS_H

#include "mlx_door.h"
#include "mlx_door_kernels.h"
#include "mlx_door_memory.h"
#include "mlx_door_wall.h"

#include "mlx/allocator.h"
#include "mlx/transforms.h"

#include <memory>

namespace {

// What waits until nobody computes is not for a deleter that is called while this thread does.
void outside_of_computing(const char * what) {
    if (Computing::now()) {
        refuse(std::string(what) + " while this thread computes");
    }
}

mlx::core::Device device_of(int32_t type, int32_t index) {
    if (type != INFER_MLX_CPU && type != INFER_MLX_GPU) {
        refuse("there is no type of devices " + std::to_string(type));
    }
    const auto which = type == INFER_MLX_CPU ? mlx::core::Device::cpu : mlx::core::Device::gpu;
    const int  count = mlx::core::device_count(which);
    if (index < 0 || index >= count) {
        throw Refused { INFER_MLX_UNSUPPORTED, std::string(type == INFER_MLX_CPU ? "CPU " : "GPU ") + std::to_string(index) + " of " +
                                                   std::to_string(count) };
    }
    return mlx::core::Device(which, index);
}

// The number of bytes of a shape, which has to be that of the caller's memory.
size_t matching(size_t bytes, const Shape & shape, mlx::core::Dtype dtype) {
    const size_t wanted = bytes_of(shape, dtype.size());
    if (bytes != wanted) {
        refuse(std::to_string(bytes) + " bytes for an array of " + std::to_string(wanted));
    }
    return bytes;
}

array uninit(const Shape & shape, mlx::core::Dtype dtype) {
    return array(memory_for(bytes_of(shape, dtype.size())), shape, dtype);
}

// Computed, and here to be read.
array & readable(Home & home, const infer_mlx_array * handle) {
    array & a = at_home(home, handle, "a");
    if (a.status() == array::Status::unscheduled) {
        throw Refused { INFER_MLX_UNEVALUATED, "the array is not evaluated" };
    }
    try {
        a.wait();
    } catch (...) {
        home.failure();
        handle->failed = true;
        throw;
    }
    handle->sound = true;
    if (a.data_shared_ptr() == nullptr) {
        throw Refused { INFER_MLX_UNEVALUATED, "the array has no data" };
    }
    return a;
}

// The arrays of a list that nothing has been computed of.
std::vector<array> due(const Home & home, const infer_mlx_array * const * arrays, size_t count) {
    needed_list(arrays, count, "arrays");
    std::vector<array> list;
    for (size_t i = 0; i < count; ++i) {
        array & a = at_home(home, arrays[i], "arrays");
        if (a.status() == array::Status::unscheduled) {
            list.push_back(a);
        }
    }
    return list;
}

void computed(Home & home, const infer_mlx_array * const * arrays, size_t count, const std::vector<array> & list, void (*how)(std::vector<array>)) {
    const Computing computing;
    evals.fetch_add(1, std::memory_order_relaxed);
    try {
        how(list);
    } catch (...) {
        // Some of it may be there, some not, and MLX does not say which.
        home.failure();
        for (size_t i = 0; i < count; ++i) {
            for (const array & a : list) {
                arrays[i]->failed |= arrays[i]->value.id() == a.id();
            }
        }
        throw;
    }
}

} // namespace

extern "C" {

// ---- streams ----

static int32_t door_stream_new(int32_t type, int32_t index, infer_mlx_stream ** out) {
    return wall([&](Home & home) {
        infer_mlx_stream *& result = needed(out, "out");
        outside_of_computing("a stream asked for");
        result = home.stream_new(device_of(type, index));
    });
}

static void door_stream_free(infer_mlx_stream * stream) {
    if (stream == nullptr) {
        return;
    }
    const Visit visit;
    if (visit.inside()) {
        return stream->home->stream_free(stream, stream->home == &visit.home());
    }
    if (over) {
        stream->home->stream_free(stream, false);
    }
}

static int32_t door_synchronize(const infer_mlx_stream * stream) {
    return wall([&](Home & home) {
        try {
            mlx::core::synchronize(stream_of(home, stream));
        } catch (const std::exception &) {
            home.failure();
            throw;
        }
        home.waited();
    });
}

// ---- arrays ----

static void door_arrays_free(infer_mlx_array * const * arrays, size_t count) {
    const Visit visit;
    if (arrays == nullptr || (!visit.inside() && !over)) {
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        if (arrays[i] != nullptr) {
            arrays[i]->home->array_free(arrays[i], visit.inside() && arrays[i]->home == &visit.home());
        }
    }
}

static int32_t door_array_share(infer_mlx_array ** out, const infer_mlx_array * a) {
    return wall([&](Home & home) {
        infer_mlx_array *& result = needed(out, "out");
        array &            value  = belonging(home, a, "a");
        result           = home.array_new(value);
        result->epoch    = a->epoch;
        result->failures = a->failures;
        result->sound    = a->sound;
        result->failed   = a->failed;
    });
}

static int32_t door_array_copy_from(infer_mlx_array ** out, const void * data, size_t bytes, const int32_t * shape, size_t ndim,
                                    int32_t dtype) {
    return wall([&](Home & home) {
        infer_mlx_array *& result = needed(out, "out");
        needed_list(data, bytes, "data");
        const Shape whole = shape_of(shape, ndim);
        matching(bytes, whole, dtype_of(dtype));
        array made = uninit(whole, dtype_of(dtype));
        if (bytes > 0) {
            std::memcpy(made.data<char>(), data, bytes);
        }
        result = home.array_new(std::move(made));
    });
}

static int32_t door_array_uninit(infer_mlx_array ** out, void ** data, size_t * bytes, const int32_t * shape, size_t ndim, int32_t dtype) {
    return wall([&](Home & home) {
        infer_mlx_array *& result = needed(out, "out");
        void *&            place  = needed(data, "data");
        size_t &           size   = needed(bytes, "bytes");
        if (std::strcmp(INFER_MLX_VARIANT, "cuda") == 0) {
            throw Refused { INFER_MLX_UNSUPPORTED, "the memory of a CUDA device is not written from here" };
        }
        array      made   = uninit(shape_of(shape, ndim), dtype_of(dtype));
        void *     memory = made.data<char>();
        const auto length = made.nbytes();
        result = home.array_new(std::move(made));
        place  = memory;
        size   = length;
    });
}

static int32_t door_array_over(infer_mlx_array ** out, void * data, size_t bytes, const int32_t * shape, size_t ndim, int32_t dtype,
                               infer_mlx_deleter deleter, void * context) {
    return wall([&](Home & home) {
        live_buffers.fetch_add(1, std::memory_order_relaxed);
        // Whoever holds it last gives the memory back: MLX, or this entry where it fails.
        const std::shared_ptr<void> memory(data, [deleter, context](void *) {
            if (deleter != nullptr) {
                deleter(context);
            }
            live_buffers.fetch_sub(1, std::memory_order_relaxed);
        });
        infer_mlx_array *& result = needed(out, "out");
        needed_list(data, bytes, "data");
        const Shape whole = shape_of(shape, ndim);
        matching(bytes, whole, dtype_of(dtype));
        if (bytes == 0) {
            result = home.array_new(uninit(whole, dtype_of(dtype)));
            return;
        }
        result = home.array_new(array(data, whole, dtype_of(dtype), [memory](void *) {}));
    });
}

static int32_t door_array_info(const infer_mlx_array * a, infer_mlx_array_info * out) {
    return wall([&](Home & home) {
        infer_mlx_array_info & info  = needed(out, "out");
        const array &          value = belonging(home, a, "a");
        info.dtype          = static_cast<int32_t>(value.dtype().val());
        info.ndim           = static_cast<uint32_t>(value.ndim());
        info.shape          = value.ndim() > 0 ? value.shape().begin() : nullptr;
        info.size           = value.size();
        info.bytes          = value.nbytes();
        info.evaluated      = value.status() != array::Status::unscheduled && home.whole(*a);
        info.row_contiguous = info.evaluated && value.flags().row_contiguous;
    });
}

static int32_t door_array_data(const infer_mlx_array * a, const void ** data, size_t * bytes) {
    return wall([&](Home & home) {
        const void *& place = needed(data, "data");
        size_t &      size  = needed(bytes, "bytes");
        array &       value = readable(home, a);
        if (!value.flags().row_contiguous) {
            refuse("the array does not lie row by row in memory: evaluate its `contiguous`");
        }
        lend(value);
        place = value.data<char>();
        size  = value.nbytes();
    });
}

static int32_t door_array_item(const infer_mlx_array * a, void * out, size_t bytes) {
    return wall([&](Home & home) {
        void * const place = &needed(static_cast<char *>(out), "out");
        array &      value = readable(home, a);
        if (value.size() != 1) {
            refuse("an array of " + std::to_string(value.size()) + " elements is no item");
        }
        if (value.itemsize() != bytes) {
            refuse("an item of " + std::to_string(value.itemsize()) + " bytes, and room for " + std::to_string(bytes));
        }
        std::memcpy(place, value.data<char>(), bytes);
    });
}

static int32_t door_eval(const infer_mlx_array * const * arrays, size_t count) {
    return wall([&](Home & home) {
        const std::vector<array> list = due(home, arrays, count);
        if (!list.empty()) {
            computed(home, arrays, count, list, [](std::vector<array> all) { mlx::core::eval(std::move(all)); });
            home.waited();
        }
        for (size_t i = 0; i < count; ++i) {
            readable(home, arrays[i]);
        }
    });
}

static int32_t door_async_eval(const infer_mlx_array * const * arrays, size_t count) {
    return wall([&](Home & home) {
        const std::vector<array> list = due(home, arrays, count);
        if (!list.empty()) {
            home.begun();
            computed(home, arrays, count, list, [](std::vector<array> all) { mlx::core::async_eval(std::move(all)); });
        }
    });
}

} // extern "C"

#endif // INFER_MLX_DOOR_ARRAYS_H
