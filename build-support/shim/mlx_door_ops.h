// The operations: each is mlx-c's, with the handles looked at.
#ifndef INFER_MLX_DOOR_OPS_H
#define INFER_MLX_DOOR_OPS_H

#include "mlx_door.h"
#include "mlx_door_kernels.h"
#include "mlx_door_math.h"
#include "mlx_door_wall.h"

#include <cmath>

namespace {

using Unary  = int (*)(mlx_array *, mlx_array, mlx_stream);
using Binary = int (*)(mlx_array *, mlx_array, mlx_array, mlx_stream);
using Reduce = int (*)(mlx_array *, mlx_array, int, bool, mlx_stream);
using Scan   = int (*)(mlx_array *, mlx_array, int, bool, bool, mlx_stream);

// ---- what mlx-c has no function for ----

array constant(double value, mlx::core::Dtype dtype);

// mlx-c's way for what is written with MLX's own functions: the result into a slot, an exception through.
int into(mlx_array * out, array value) {
    out->ctx = new array(std::move(value));
    return 0;
}

mlx::core::Stream stream_at(mlx_stream stream) {
    return *static_cast<mlx::core::Stream *>(stream.ctx);
}

const array & array_at(mlx_array a) {
    return *static_cast<const array *>(a.ctx);
}

int silu(mlx_array * out, mlx_array a, mlx_stream stream) {
    const array &           x = array_at(a);
    const mlx::core::Stream s = stream_at(stream);
    return into(out, multiply(x, sigmoid(x, s), s));
}

int gelu(mlx_array * out, mlx_array a, mlx_stream stream) {
    const array &           x      = array_at(a);
    const mlx::core::Stream s      = stream_at(stream);
    const auto              number = [&](double value) { return constant(value, x.dtype()); };
    const array inner = erf(divide(x, number(std::sqrt(2.0)), s), s);
    return into(out, divide(multiply(x, add(number(1), inner, s), s), number(2), s));
}

int gelu_tanh(mlx_array * out, mlx_array a, mlx_stream stream) {
    const array &           x      = array_at(a);
    const mlx::core::Stream s      = stream_at(stream);
    const auto              number = [&](double value) { return constant(value, x.dtype()); };
    const array cube  = multiply(number(0.044715), power(x, number(3), s), s);
    const array inner = tanh(multiply(number(std::sqrt(2.0 / 3.14159265358979323846)), add(x, cube, s), s), s);
    return into(out, multiply(multiply(number(0.5), x, s), add(number(1), inner, s), s));
}

int matmul(mlx_array * out, mlx_array a, mlx_array b, mlx_stream stream) {
    const mlx::core::Stream s = stream_at(stream);
    if (multiplies(array_at(a), array_at(b), s)) {
        return into(out, product(array_at(a), array_at(b), s));
    }
    return mlx_matmul(out, a, b, stream);
}

const Unary UNARY[] = {
    mlx_abs,     mlx_negative,    mlx_exp,           mlx_log,      mlx_log1p, mlx_sqrt, mlx_rsqrt, mlx_square, mlx_reciprocal,
    mlx_sin,     mlx_cos,         mlx_tanh,          mlx_sigmoid,  mlx_erf,   mlx_floor, mlx_ceil, mlx_sign,   mlx_logical_not,
    mlx_isnan,   mlx_isfinite,    mlx_stop_gradient, mlx_copy,     silu,      gelu,     gelu_tanh,
};
static_assert(sizeof(UNARY) / sizeof(UNARY[0]) == INFER_MLX_UNARY_COUNT, "one function each, in this order");

const Binary BINARY[] = {
    mlx_add,         mlx_subtract,    mlx_multiply,   mlx_divide,     mlx_floor_divide, mlx_remainder,     mlx_power,      mlx_maximum,
    mlx_minimum,     mlx_logaddexp,   mlx_equal,      mlx_not_equal,  mlx_less,         mlx_less_equal,    mlx_greater,    mlx_greater_equal,
    mlx_logical_and, mlx_logical_or,  mlx_bitwise_and, mlx_bitwise_or, mlx_bitwise_xor, mlx_left_shift,    mlx_right_shift, matmul,
};
static_assert(sizeof(BINARY) / sizeof(BINARY[0]) == INFER_MLX_BINARY_COUNT, "one function each, in this order");

const Reduce REDUCE[] = {
    mlx_sum_axis, mlx_mean_axis, mlx_max_axis,       mlx_min_axis,    mlx_prod_axis,
    mlx_all_axis, mlx_any_axis,  mlx_logsumexp_axis, mlx_argmax_axis, mlx_argmin_axis,
};
static_assert(sizeof(REDUCE) / sizeof(REDUCE[0]) == INFER_MLX_REDUCTION_COUNT, "one function each, in this order");

int cumsum(mlx_array * out, mlx_array a, int axis, bool reverse, bool inclusive, mlx_stream stream) {
    return mlx_cumsum_axis(out, a, axis, reverse, inclusive, mlx_optional_dtype {}, stream);
}

int cumprod(mlx_array * out, mlx_array a, int axis, bool reverse, bool inclusive, mlx_stream stream) {
    return mlx_cumprod_axis(out, a, axis, reverse, inclusive, mlx_optional_dtype {}, stream);
}

const Scan SCAN[] = { cumsum, cumprod, mlx_cummax_axis, mlx_cummin_axis, mlx_logcumsumexp_axis };
static_assert(sizeof(SCAN) / sizeof(SCAN[0]) == INFER_MLX_SCAN_COUNT, "one function each, in this order");

template <typename T, size_t N>
T chosen(const T (&functions)[N], uint32_t op) {
    if (op >= N) {
        refuse("there is no operation " + std::to_string(op));
    }
    return functions[op];
}

// A scalar of a type, which has to be able to hold it.
array constant(double value, mlx::core::Dtype dtype) {
    using namespace mlx::core;
    if (dtype == float64) {
        return array(value, dtype);
    }
    if (issubdtype(dtype, inexact)) {
        return array(static_cast<float>(value), dtype);
    }
    // 2^63, which is the first that is too large, is exact.
    if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0) || value != std::trunc(value)) {
        refuse("the number " + std::to_string(value) + " is none of an integer type");
    }
    const auto whole = static_cast<int64_t>(value);
    const bool fits  = dtype == bool_                ? whole == 0 || whole == 1
                       : issubdtype(dtype, unsignedinteger) ? whole >= 0 && (dtype.size() == 8 || whole < int64_t(1) << (8 * dtype.size()))
                                                     : dtype.size() == 8 || (whole >= -(int64_t(1) << (8 * dtype.size() - 1)) &&
                                                                             whole < int64_t(1) << (8 * dtype.size() - 1));
    if (!fits) {
        refuse("the number " + std::to_string(whole) + " does not fit the type");
    }
    return array(whole, dtype);
}

// The processor divides integers, and ends the process where it cannot: by 0, or the smallest number by -1. MLX raises them to a negative power
// without end. `safe`: the right one is a number that is neither.
void ending(uint32_t op, const array & a, const array & b, bool safe) {
    const bool risky = op == INFER_MLX_FLOOR_DIVIDE || op == INFER_MLX_REMAINDER || op == INFER_MLX_POWER;
    if (risky && !safe && !mlx::core::issubdtype(mlx::core::promote_types(a.dtype(), b.dtype()), mlx::core::inexact)) {
        throw Refused { INFER_MLX_UNSUPPORTED, "integers are not divided by an array, or raised to it: a 0 there would end the process, a negative power "
                                               "would have no end" };
    }
}

// MLX divides by the number of elements, or by a length, in what this is for; or counts to it without end.
mlx_array lent_filled(const Home & home, const infer_mlx_array * handle, const char * name) {
    array & a = at_home(home, handle, name);
    if (a.size() == 0) {
        throw Refused { INFER_MLX_UNSUPPORTED, std::string(name) + ": an array without elements, which MLX does not take here" };
    }
    return lent(a);
}

// How a matrix is quantised: MLX divides by both before it looks at them.
void quantised(int32_t group_size, int32_t bits) {
    if (group_size < 1 || bits < 1 || bits > 8) {
        refuse("groups of " + std::to_string(group_size) + " with " + std::to_string(bits) + " bits");
    }
}

// Every row of the matrix has its scales and biases: MLX reads them by the rows of the matrix, and looks at the batches alone.
void fitting(const Home & home, const infer_mlx_array * w, const infer_mlx_array * scales, const infer_mlx_array * biases) {
    const Shape & of_w = at_home(home, w, "w").shape();
    const Shape & of_scales = at_home(home, scales, "scales").shape();
    if (of_w.size() < 2 || of_w.size() != of_scales.size() || !std::equal(of_w.begin(), of_w.end() - 1, of_scales.begin())) {
        refuse("scales for other rows than the matrix has");
    }
    if (at_home(home, biases, "biases").shape() != of_scales) {
        refuse("biases of another shape than the scales'");
    }
}

// The arrays of a list, for as long as MLX looks at them.
std::vector<array> listed(const Home & home, const infer_mlx_array * const * arrays, size_t count) {
    needed_list(arrays, count, "arrays");
    std::vector<array> list;
    list.reserve(count);
    for (size_t i = 0; i < count; ++i) {
        list.push_back(at_home(home, arrays[i], "arrays"));
    }
    return list;
}

} // namespace

extern "C" {

// ---- made from nothing ----

static int32_t door_full(infer_mlx_array ** out, const int32_t * shape, size_t ndim, double value, int32_t dtype,
                         const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home &, mlx_array * made, mlx_stream s) {
        const mlx::core::Dtype type = dtype_of(dtype);
        bytes_of(shape_of(shape, ndim), type.size());
        array number = constant(value, type);
        return mlx_full(made, shape, ndim, lent(number), c_dtype(dtype), s);
    });
}

static int32_t door_arange(infer_mlx_array ** out, double start, double stop, double step, int32_t dtype,
                           const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home &, mlx_array * made, mlx_stream s) {
        // MLX converts what this comes to into an int.
        if (!(std::abs((stop - start) / step) < 2147483648.0)) {
            refuse("a range that is not finite, or has 2^31 values or more");
        }
        return mlx_arange(made, start, stop, step, c_dtype(dtype), s);
    });
}

// ---- elementwise ----

static int32_t door_unary(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) { return chosen(UNARY, op)(made, lent(home, a, "a"), s); });
}

static int32_t door_binary(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, const infer_mlx_array * b,
                           const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        array & left  = at_home(home, a, "a");
        array & right = at_home(home, b, "b");
        ending(op, left, right, false);
        return chosen(BINARY, op)(made, lent(left), lent(right), s);
    });
}

static int32_t door_binary_scalar(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, double b, bool reversed,
                                  const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        array & other  = at_home(home, a, "a");
        array   number = constant(b, other.dtype());
        ending(op, other, number, !reversed && (op == INFER_MLX_POWER ? b >= 0 : b != 0 && b != -1));
        return chosen(BINARY, op)(made, reversed ? lent(number) : lent(other), reversed ? lent(other) : lent(number), s);
    });
}

static int32_t door_select(infer_mlx_array ** out, const infer_mlx_array * condition, const infer_mlx_array * a, const infer_mlx_array * b,
                           const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_where(made, lent(home, condition, "condition"), lent(home, a, "a"), lent(home, b, "b"), s);
    });
}

static int32_t door_clip(infer_mlx_array ** out, const infer_mlx_array * a, const infer_mlx_array * low, const infer_mlx_array * high,
                         const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_clip(made, lent(home, a, "a"), lent_if(home, low, "low"), lent_if(home, high, "high"), s);
    });
}

static int32_t door_astype(infer_mlx_array ** out, const infer_mlx_array * a, int32_t dtype, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_astype(made, lent(home, a, "a"), c_dtype(dtype), s);
    });
}

static int32_t door_view(infer_mlx_array ** out, const infer_mlx_array * a, int32_t dtype, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_view(made, lent(home, a, "a"), c_dtype(dtype), s);
    });
}

// ---- along an axis ----

static int32_t door_reduce(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, int32_t axis, bool keepdims,
                           const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return chosen(REDUCE, op)(made, lent_filled(home, a, "a"), axis, keepdims, s);
    });
}

static int32_t door_scan(infer_mlx_array ** out, uint32_t op, const infer_mlx_array * a, int32_t axis, bool reverse, bool inclusive,
                         const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return chosen(SCAN, op)(made, lent_filled(home, a, "a"), axis, reverse, inclusive, s);
    });
}

static int32_t door_softmax(infer_mlx_array ** out, const infer_mlx_array * a, int32_t axis, bool precise, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_softmax_axis(made, lent(home, a, "a"), axis, precise, s);
    });
}

static int32_t door_sort(infer_mlx_array ** out, const infer_mlx_array * a, int32_t axis, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) { return mlx_sort_axis(made, lent_filled(home, a, "a"), axis, s); });
}

static int32_t door_argsort(infer_mlx_array ** out, const infer_mlx_array * a, int32_t axis, const infer_mlx_stream * stream) {
    return operation(out, stream,
                     [&](Home & home, mlx_array * made, mlx_stream s) { return mlx_argsort_axis(made, lent_filled(home, a, "a"), axis, s); });
}

static int32_t door_argpartition(infer_mlx_array ** out, const infer_mlx_array * a, int32_t kth, int32_t axis,
                                 const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_argpartition_axis(made, lent_filled(home, a, "a"), kth, axis, s);
    });
}

static int32_t door_topk(infer_mlx_array ** out, const infer_mlx_array * a, int32_t k, int32_t axis, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) { return mlx_topk_axis(made, lent_filled(home, a, "a"), k, axis, s); });
}

// ---- networks ----

static int32_t door_addmm(infer_mlx_array ** out, const infer_mlx_array * c, const infer_mlx_array * a, const infer_mlx_array * b, float alpha,
                          float beta, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_addmm(made, lent(home, c, "c"), lent(home, a, "a"), lent(home, b, "b"), alpha, beta, s);
    });
}

static int32_t door_quantized_matmul(infer_mlx_array ** out, const infer_mlx_array * x, const infer_mlx_array * w,
                                     const infer_mlx_array * scales, const infer_mlx_array * biases, bool transpose, int32_t group_size,
                                     int32_t bits, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        quantised(group_size, bits);
        fitting(home, w, scales, biases);
        const array * const all[] { &at_home(home, x, "x"), &at_home(home, w, "w"), &at_home(home, scales, "scales"), &at_home(home, biases, "biases") };
        if (transpose && multiplies_packed(*all[0], *all[1], *all[2], *all[3], group_size, bits, stream_at(s))) {
            return into(made, packed_product(*all[0], *all[1], *all[2], *all[3], group_size, bits, stream_at(s)));
        }
        return mlx_quantized_matmul(made, lent_filled(home, x, "x"), lent_filled(home, w, "w"), lent_filled(home, scales, "scales"), lent_filled(home, biases, "biases"),
                                    transpose, mlx_optional_int { group_size, true }, mlx_optional_int { bits, true }, "affine", s);
    });
}

static int32_t door_dequantize(infer_mlx_array ** out, const infer_mlx_array * w, const infer_mlx_array * scales,
                               const infer_mlx_array * biases, int32_t group_size, int32_t bits, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        quantised(group_size, bits);
        fitting(home, w, scales, biases);
        return mlx_dequantize(made, lent_filled(home, w, "w"), lent_filled(home, scales, "scales"), lent_filled(home, biases, "biases"),
                              mlx_optional_int { group_size, true }, mlx_optional_int { bits, true }, "affine", mlx_array { nullptr },
                              mlx_optional_dtype {}, s);
    });
}

static int32_t door_quantize(infer_mlx_array ** outs, const infer_mlx_array * w, int32_t group_size, int32_t bits,
                             const infer_mlx_stream * stream) {
    return operations(outs, 3, stream, [&](Home & home, mlx_vector_array * made, mlx_stream s) {
        quantised(group_size, bits);
        return mlx_quantize(made, lent_filled(home, w, "w"), mlx_optional_int { group_size, true }, mlx_optional_int { bits, true }, "affine",
                            mlx_array { nullptr }, s);
    });
}

static int32_t door_rms_norm(infer_mlx_array ** out, const infer_mlx_array * x, const infer_mlx_array * weight, float eps,
                             const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_fast_rms_norm(made, lent(home, x, "x"), lent_if(home, weight, "weight"), eps, s);
    });
}

static int32_t door_layer_norm(infer_mlx_array ** out, const infer_mlx_array * x, const infer_mlx_array * weight, const infer_mlx_array * bias,
                               float eps, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_fast_layer_norm(made, lent(home, x, "x"), lent_if(home, weight, "weight"), lent_if(home, bias, "bias"), eps, s);
    });
}

static int32_t door_rope(infer_mlx_array ** out, const infer_mlx_array * x, int32_t dims, bool traditional, float base, float scale,
                         int32_t offset, const infer_mlx_array * freqs, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_fast_rope(made, lent(home, x, "x"), dims, traditional, mlx_optional_float { base, freqs == nullptr }, scale, offset,
                             lent_if(home, freqs, "freqs"), s);
    });
}

static int32_t door_rope_at(infer_mlx_array ** out, const infer_mlx_array * x, int32_t dims, bool traditional, float base, float scale,
                            const infer_mlx_array * offsets, const infer_mlx_array * freqs, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return mlx_fast_rope_dynamic(made, lent(home, x, "x"), dims, traditional, mlx_optional_float { base, freqs == nullptr }, scale,
                                     lent(home, offsets, "offsets"), lent_if(home, freqs, "freqs"), s);
    });
}

static int32_t door_attention(infer_mlx_array ** out, const infer_mlx_array * q, const infer_mlx_array * k, const infer_mlx_array * v,
                              float scale, uint32_t mask, const infer_mlx_array * mask_array, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        static const char * const modes[] = { "", "causal", "array" };
        const char * const        mode    = chosen(modes, mask);
        if ((mask == INFER_MLX_MASK_ARRAY) != (mask_array != nullptr)) {
            refuse("mask_array goes with INFER_MLX_MASK_ARRAY, and with nothing else");
        }
        const bool              causal = mask == INFER_MLX_MASK_CAUSAL;
        const array *           seen   = mask_array == nullptr ? nullptr : &at_home(home, mask_array, "mask_array");
        const mlx::core::Stream place  = stream_at(s);
        const array & queries = at_home(home, q, "q"), & keys = at_home(home, k, "k"), & values = at_home(home, v, "v");
        if (attends(queries, keys, values, causal, seen, place)) {
            return into(made, attention(queries, keys, values, scale, causal, seen, place));
        }
        if (queries.ndim() == 4 && keys.ndim() == 4) {
            // MLX has all scores at once, and in 32 bits.
            bytes_of({ queries.shape(0), queries.shape(1), queries.shape(2), keys.shape(2) }, sizeof(float));
        }
        return mlx_fast_scaled_dot_product_attention(made, lent_filled(home, q, "q"), lent_filled(home, k, "k"), lent_filled(home, v, "v"), scale, mode,
                                                     lent_if(home, mask_array, "mask_array"), mlx_array { nullptr }, false, s);
    });
}

static int32_t door_kv_write(infer_mlx_array ** out, const infer_mlx_array * buffer, const infer_mlx_array * rows, int32_t axis,
                             int32_t offset, const infer_mlx_stream * stream) {
    return operation(out, stream, [&](Home & home, mlx_array * made, mlx_stream s) {
        return into(made, kv_write(at_home(home, buffer, "buffer"), at_home(home, rows, "rows"), axis, offset, stream_at(s)));
    });
}

} // extern "C"

#endif // INFER_MLX_DOOR_OPS_H
