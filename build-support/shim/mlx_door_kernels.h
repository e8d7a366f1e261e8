// What MLX does not have: a write into a KV cache that copies nothing, and indices that are looked at.
//
// Both are primitives of MLX's graph for its CPU streams: `eval_cpu` is called on the thread that evaluates and hands the work to the stream's own
// thread, in the order of the graph. An exception there becomes the error of the evaluation.
#ifndef INFER_MLX_DOOR_KERNELS_H
#define INFER_MLX_DOOR_KERNELS_H

#include "mlx_door_memory.h"
#include "mlx_door_wall.h"

#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"

#include <cstring>
#include <limits>

namespace {

bool on_cpu(const mlx::core::Stream & stream) {
    return stream.device.type == mlx::core::Device::cpu;
}

int32_t length(const array & a, int32_t axis) {
    const auto ndim = static_cast<int32_t>(a.ndim());
    if (axis < -ndim || axis >= ndim) {
        refuse("axis " + std::to_string(axis) + " of an array with " + std::to_string(ndim) + " axes");
    }
    return a.shape(axis);
}

void needed_steps(const int32_t * start, const int32_t * stop, const int32_t * step, size_t ndim) {
    needed_list(start, ndim, "start");
    needed_list(stop, ndim, "stop");
    needed_list(step, ndim, "step");
    for (size_t i = 0; i < ndim; ++i) {
        // MLX divides by it.
        if (step[i] == 0) {
            refuse("a step of 0");
        }
    }
}

// Hands `compute(in, out)` to the stream's thread, with the inputs of an operation and its result, which has its memory.
template <typename F>
void hand_over(mlx::core::Stream stream, const std::vector<array> & inputs, array & out, F compute) {
    auto & encoder = mlx::core::cpu::get_command_encoder(stream);
    std::vector<array> in;
    in.reserve(inputs.size());
    for (const array & input : inputs) {
        encoder.set_input_array(input);
        // MLX keeps the arrays of an operation until it is done.
        in.push_back(array::unsafe_weak_copy(input));
    }
    encoder.set_output_array(out);
    encoder.dispatch([compute, in = std::move(in), out = array::unsafe_weak_copy(out)]() mutable { compute(in, out); });
}

// ---- rows into a buffer ----

// Memory that is written in place must not be read meanwhile by somebody outside, so it is either handed out or written, never both. Which of
// them is said by the function that frees it: all three do the same.
void free_lent(mlx::core::allocator::Buffer buffer) {
    mlx::core::allocator::free(buffer);
}

void free_written(mlx::core::allocator::Buffer buffer) {
    mlx::core::allocator::free(buffer);
}

using Free = void (*)(mlx::core::allocator::Buffer);

// The function; NULL where it is none but a closure: memory of somebody else.
Free freed_by(const array::Data & data) {
    const Free * const by = data.d.target<Free>();
    return by == nullptr ? nullptr : *by;
}

// The memory of an array is handed out.
void lend(array & a) {
    array::Data & data = *a.data_shared_ptr();
    const Free    by   = freed_by(data);
    if (by == free_written) {
        refuse("the array shares the memory of a KV cache, which is written in place: compute a copy of what is to be read");
    }
    if (by != nullptr) {
        data.d = free_lent;
    }
}

// Whether the memory of a buffer may be written in place; from now on it is not handed out.
bool claim(const array & buffer) {
    if (!buffer.flags().row_contiguous || buffer.data_size() != buffer.size()) {
        return false;
    }
    array::Data & data = *buffer.data_shared_ptr();
    const Free    by   = freed_by(data);
    if (by == nullptr || by == free_lent) {
        return false;
    }
    data.d = free_written;
    return true;
}

// Copies `from` (any strides) over the part of `to` (row by row) that begins at element `at`, and has the shape of `from`.
void write_part(const array & from, array & to, size_t at) {
    const size_t width = from.itemsize();
    const auto   ndim  = static_cast<int>(from.ndim());
    const auto * source = from.data<char>();
    auto *       target = to.data<char>() + at * width;
    const auto   inner  = static_cast<size_t>(from.shape(-1));
    const int64_t step  = from.strides(-1);
    const size_t outer  = from.size() / inner;
    std::vector<int32_t> position(ndim, 0);
    for (size_t n = 0; n < outer; ++n) {
        int64_t read = 0, written = 0;
        for (int i = 0; i + 1 < ndim; ++i) {
            read    += position[i] * from.strides(i);
            written += position[i] * to.strides(i);
        }
        const char * r = source + read * static_cast<int64_t>(width);
        char *       w = target + written * static_cast<int64_t>(width);
        if (step == 1) {
            std::memcpy(w, r, inner * width);
        } else {
            for (size_t i = 0; i < inner; ++i) {
                std::memcpy(w + i * width, r + static_cast<int64_t>(i) * step * static_cast<int64_t>(width), width);
            }
        }
        for (int i = ndim - 2; i >= 0 && ++position[i] == from.shape(i); --i) {
            position[i] = 0;
        }
    }
}

class KvWrite : public mlx::core::Primitive {
public:
    KvWrite(mlx::core::Stream stream, size_t at) : Primitive(stream), at_(at) {}

    void eval_cpu(const std::vector<array> & inputs, std::vector<array> & outputs) override {
        const array & buffer = inputs[0];
        array &       out    = outputs[0];
        const bool in_place = claim(buffer);
        if (in_place) {
            out.copy_shared_buffer(buffer);
        } else {
            out.set_data(memory_for(out.nbytes()));
        }
        hand_over(stream(), inputs, out, [in_place, at = at_](const std::vector<array> & in, array & to) {
            if (!in_place) {
                write_part(in[0], to, 0);
            }
            write_part(in[1], to, at);
        });
    }

    void eval_gpu(const std::vector<array> &, std::vector<array> &) override { throw std::runtime_error("kv_write is made for the CPU"); }

    const char * name() const override { return "KvWrite"; }

private:
    size_t at_;
};

array kv_write(const array & buffer, const array & rows, int32_t axis, int32_t offset, mlx::core::Stream stream) {
    const int32_t room = length(buffer, axis);
    const int32_t ndim = static_cast<int32_t>(buffer.ndim());
    const int32_t on   = axis < 0 ? axis + ndim : axis;
    Shape fits = rows.shape();
    if (rows.ndim() == buffer.ndim()) {
        fits[on] = room;
    }
    if (fits != buffer.shape() || rows.dtype() != buffer.dtype()) {
        refuse("rows of another shape or type than the buffer's");
    }
    if (offset < 0 || rows.shape(on) > room || offset > room - rows.shape(on)) {
        refuse(std::to_string(rows.shape(on)) + " rows at " + std::to_string(offset) + ", and the buffer has " + std::to_string(room));
    }
    if (rows.size() == 0) {
        return buffer;
    }
    if (!on_cpu(stream)) {
        Shape start(ndim, 0), stop = buffer.shape();
        start[on] = offset;
        stop[on]  = offset + rows.shape(on);
        return mlx::core::slice_update(buffer, rows, start, stop, stream);
    }
    size_t stride = 1;
    for (int32_t i = on + 1; i < ndim; ++i) {
        stride *= static_cast<size_t>(buffer.shape(i));
    }
    return array(buffer.shape(), buffer.dtype(), std::make_shared<KvWrite>(stream, offset * stride), { buffer, rows });
}

// ---- indices ----

template <typename T>
void copy_within(const array & from, array & to, int64_t n) {
    const T * in      = from.data<T>();
    T *       out     = to.data<T>();
    bool      outside = false;
    T         culprit = 0;
    for (size_t i = 0; i < from.size(); ++i) {
        const T value = in[i];
        bool    fine  = value >= 0 ? static_cast<uint64_t>(value) < static_cast<uint64_t>(n) : static_cast<int64_t>(value) >= -n;
        if (!fine && !outside) {
            outside = true;
            culprit = value;
        }
        out[i] = fine ? value : T(0);
    }
    if (outside) {
        throw std::out_of_range("index " + std::to_string(culprit) + " of an axis of length " + std::to_string(n));
    }
}

// Indices as they are; one that lies outside fails the evaluation, and is 0 for what is computed of it until that is noticed.
class Within : public mlx::core::Primitive {
public:
    Within(mlx::core::Stream stream, int32_t n) : Primitive(stream), n_(n) {}

    void eval_cpu(const std::vector<array> & inputs, std::vector<array> & outputs) override {
        outputs[0].set_data(memory_for(outputs[0].nbytes()));
        hand_over(stream(), inputs, outputs[0], [n = n_](const std::vector<array> & indices, array & out) {
            const array & in = indices[0];
            switch (in.dtype().val()) {
                case mlx::core::Dtype::Val::uint8:  return copy_within<uint8_t>(in, out, n);
                case mlx::core::Dtype::Val::uint16: return copy_within<uint16_t>(in, out, n);
                case mlx::core::Dtype::Val::uint32: return copy_within<uint32_t>(in, out, n);
                case mlx::core::Dtype::Val::uint64: return copy_within<uint64_t>(in, out, n);
                case mlx::core::Dtype::Val::int8:   return copy_within<int8_t>(in, out, n);
                case mlx::core::Dtype::Val::int16:  return copy_within<int16_t>(in, out, n);
                case mlx::core::Dtype::Val::int32:  return copy_within<int32_t>(in, out, n);
                case mlx::core::Dtype::Val::int64:  return copy_within<int64_t>(in, out, n);
                default:                            throw std::invalid_argument("indices that are no integers");
            }
        });
    }

    void eval_gpu(const std::vector<array> &, std::vector<array> &) override { throw std::runtime_error("made for the CPU"); }

    const char * name() const override { return "Within"; }

private:
    int32_t n_;
};

array within(const array & indices, int32_t n, mlx::core::Stream stream) {
    using namespace mlx::core;
    if (!issubdtype(indices.dtype(), integer)) {
        refuse("indices that are no integers");
    }
    if (n == 0 && indices.size() > 0) {
        refuse("indices into an axis of length 0");
    }
    if (on_cpu(stream)) {
        const array whole = contiguous(indices, false, stream);
        return array(whole.shape(), whole.dtype(), std::make_shared<Within>(stream, n), { whole });
    }
    // Wide enough for the bounds, whatever the type of the indices.
    const array wide = astype(indices, int64, stream);
    return clip(wide, array(-static_cast<int64_t>(n), int64), array(static_cast<int64_t>(n) - 1, int64), stream);
}

} // namespace

#endif // INFER_MLX_DOOR_KERNELS_H
