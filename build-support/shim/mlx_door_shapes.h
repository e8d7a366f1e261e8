// Operations on shapes, and those that pick by index.
#ifndef INFER_MLX_DOOR_SHAPES_H
#define INFER_MLX_DOOR_SHAPES_H

#include "mlx_door.h"
#include "mlx_door_kernels.h"
#include "mlx_door_ops.h"
#include "mlx_door_wall.h"

extern "C" {

static int32_t door_reshape(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * shape, size_t ndim,
                            const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        needed_list(shape, ndim, "shape");
        return mlx_reshape(made, lent(home, a, "a"), shape, ndim, s);
    });
}

static int32_t door_broadcast_to(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * shape, size_t ndim,
                                 const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        needed_list(shape, ndim, "shape");
        return mlx_broadcast_to(made, lent(home, a, "a"), shape, ndim, s);
    });
}

static int32_t door_transpose(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * axes, size_t count,
                              const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return axes == nullptr ? mlx_transpose(made, lent(home, a, "a"), s) : mlx_transpose_axes(made, lent(home, a, "a"), axes, count, s);
    });
}

static int32_t door_expand_dims(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * axes, size_t count,
                                const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        needed_list(axes, count, "axes");
        return mlx_expand_dims_axes(made, lent(home, a, "a"), axes, count, s);
    });
}

static int32_t door_squeeze(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * axes, size_t count,
                            const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        needed_list(axes, count, "axes");
        return mlx_squeeze_axes(made, lent(home, a, "a"), axes, count, s);
    });
}

static int32_t door_contiguous(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) { return mlx_contiguous(made, lent(home, a, "a"), false, s); });
}

static int32_t door_slice(infer_mlx_array ** out, const infer_mlx_array * a, const int32_t * start, const int32_t * stop,
                          const int32_t * step, size_t ndim, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        needed_steps(start, stop, step, ndim);
        return mlx_slice(made, lent(home, a, "a"), start, ndim, stop, ndim, step, ndim, s);
    });
}

static int32_t door_slice_update(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * update, const int32_t * start,
                                 const int32_t * stop, const int32_t * step, size_t ndim, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        needed_steps(start, stop, step, ndim);
        return mlx_slice_update(made, lent(home, a, "a"), lent(home, update, "update"), start, ndim, stop, ndim, step, ndim, s);
    });
}

static int32_t door_concatenate(infer_mlx_array ** out, const infer_mlx_array * const * arrays, size_t count, int32_t axis,
                                const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        std::vector<array> list = listed(home, arrays, count);
        return mlx_concatenate_axis(made, mlx_vector_array { &list }, axis, s);
    });
}

static int32_t door_stack(infer_mlx_array ** out, const infer_mlx_array * const * arrays, size_t count, int32_t axis,
                          const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        std::vector<array> list = listed(home, arrays, count);
        return mlx_stack_axis(made, mlx_vector_array { &list }, axis, s);
    });
}

static int32_t door_split(infer_mlx_array ** outs, const infer_mlx_array * a, const int32_t * indices, size_t count, int32_t axis,
                          const infer_mlx_stream * stream) {
    return operations(outs, count + 1, stream, [&](Home & home, mlx_vector_array * made, mlx_stream s) {
        needed_list(indices, count, "indices");
        return mlx_split_sections(made, lent(home, a, "a"), indices, count, axis, s);
    });
}

static int32_t door_repeat(infer_mlx_array ** out, const infer_mlx_array * a, int32_t times, int32_t axis, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        array & from = at_home(home, a, "a");
        // MLX counts in 32 bits.
        if (int64_t(length(from, axis)) * times > INT32_MAX) {
            throw Refused { INFER_MLX_MEMORY, "an axis of 2^31 elements or more" };
        }
        return mlx_repeat_axis(made, lent(from), times, axis, s);
    });
}

static int32_t door_tril(infer_mlx_array ** out, const infer_mlx_array * a, int32_t k, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) { return mlx_tril(made, lent(home, a, "a"), k, s); });
}

static int32_t door_triu(infer_mlx_array ** out, const infer_mlx_array * a, int32_t k, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) { return mlx_triu(made, lent(home, a, "a"), k, s); });
}

// ---- by index ----

static int32_t door_take(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * indices, int32_t axis,
                         const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        array & from   = at_home(home, a, "a");
        array   inside = within(at_home(home, indices, "indices"), length(from, axis), stream_at(s));
        return mlx_take_axis(made, lent(from), lent(inside), axis, s);
    });
}

static int32_t door_take_along_axis(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * indices, int32_t axis,
                                    const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        array & from   = at_home(home, a, "a");
        array   inside = within(at_home(home, indices, "indices"), length(from, axis), stream_at(s));
        return mlx_take_along_axis(made, lent(from), lent(inside), axis, s);
    });
}

static int32_t door_put_along_axis(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * indices,
                                   const infer_mlx_array * values, int32_t axis, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        array & into   = at_home(home, a, "a");
        array   inside = within(at_home(home, indices, "indices"), length(into, axis), stream_at(s));
        return mlx_put_along_axis(made, lent(into), lent(inside), lent(home, values, "values"), axis, s);
    });
}

} // extern "C"

#endif // INFER_MLX_DOOR_SHAPES_H
