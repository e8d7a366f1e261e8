// Products of matrices and attention on the CPU, in 32 bits.
//
// The MLX that Linux gets multiplies by a reference BLAS: one number after the other. Here are products for processors with AVX2 or AVX-512 (which of
// them is asked when the first one is made), on the stream's thread as all of MLX. They add up in another order than MLX does, and are otherwise
// the same operations; whatever they are not made for is left to MLX: other types, other devices, other processors.
//
// All kernels are dot products or sums of rows, without packing: of a block of rows of `a`, that fits a core's second cache, and a few rows of `b`, that fit
// the first. What is read from memory is read once a block. Of a matrix whose numbers have a few bits these rows are unpacked first.
#ifndef INFER_MLX_DOOR_MATH_H
#define INFER_MLX_DOOR_MATH_H

#include "mlx_door_kernels.h"
#include "mlx_door_packed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#if defined(__x86_64__)
#    include <immintrin.h>
#    define INFER_MLX_MATH 1
// The variable that says what is used at most: "avx2"; or "none", which leaves all to MLX. Sums then come out as on a processor that has no more.
#    define INFER_MLX_INSTRUCTIONS "INFER_MLX_INSTRUCTIONS"
#endif

namespace {

// A matrix in memory: `data[row * step + column]`.
struct Rows {
    const float * data;
    int64_t       step;
};

#ifdef INFER_MLX_MATH

// How many rows of `a` are looked at before the next rows of `b`.
constexpr int64_t BLOCK = 96;

// The kernels of one instruction set. `dots`: c[i][j] = a[i] . b[j], for `rows` of a and `columns` rows of b. `sums`: c[i] = sum over k of
// a[i][k] b[k], for `rows` of a and `columns` numbers of each row of b. `weights`: turns scores into weights that add up to 1. `unpack`: the numbers of
// a row of few bits.
struct Math {
    void (*dots)(Rows a, Rows b, float * c, int64_t step, int64_t rows, int64_t columns, int64_t depth);
    void (*sums)(Rows a, Rows b, float * c, int64_t step, int64_t rows, int64_t columns, int64_t depth);
    void (*weights)(float * scores, int64_t count, float scale);
    void (*unpack)(const Packed & packed, int64_t row, float * to);
};

#    if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes what its own header leaves undefined on purpose for a mistake (its bug 105593).
#        pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#        pragma GCC diagnostic ignored "-Wuninitialized"
#    endif

#    define INFER_MLX_V      __m512
#    define INFER_MLX_TARGET __attribute__((target("avx512f,avx512dq,fma")))
#    define INFER_MLX_WIDE   16
#    define INFER_MLX_TALL   6
#    define INFER_MLX_NAME(name) name##_avx512
#    define INFER_MLX_ZERO()        _mm512_setzero_ps()
#    define INFER_MLX_ALL(x)        _mm512_set1_ps(x)
#    define INFER_MLX_LOAD(p)       _mm512_loadu_ps(p)
#    define INFER_MLX_STORE(p, v)   _mm512_storeu_ps(p, v)
#    define INFER_MLX_FMA(a, b, c)  _mm512_fmadd_ps(a, b, c)
#    define INFER_MLX_ADD(a, b)     _mm512_add_ps(a, b)
#    define INFER_MLX_MUL(a, b)     _mm512_mul_ps(a, b)
#    define INFER_MLX_SUB(a, b)     _mm512_sub_ps(a, b)
#    define INFER_MLX_MAX(a, b)     _mm512_max_ps(a, b)
#    define INFER_MLX_NEAREST(a)    _mm512_roundscale_ps(a, 0)
#    define INFER_MLX_TWO_TO(n)     _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23))
#    define INFER_MLX_SUM(v)        _mm512_reduce_add_ps(v)
#    include "mlx_door_math_kernels.h"

__attribute__((target("avx2,fma"))) inline float sum_of(__m256 v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

#    define INFER_MLX_V      __m256
#    define INFER_MLX_TARGET __attribute__((target("avx2,fma")))
#    define INFER_MLX_WIDE   8
#    define INFER_MLX_TALL   3
#    define INFER_MLX_NAME(name) name##_avx2
#    define INFER_MLX_ZERO()        _mm256_setzero_ps()
#    define INFER_MLX_ALL(x)        _mm256_set1_ps(x)
#    define INFER_MLX_LOAD(p)       _mm256_loadu_ps(p)
#    define INFER_MLX_STORE(p, v)   _mm256_storeu_ps(p, v)
#    define INFER_MLX_FMA(a, b, c)  _mm256_fmadd_ps(a, b, c)
#    define INFER_MLX_ADD(a, b)     _mm256_add_ps(a, b)
#    define INFER_MLX_MUL(a, b)     _mm256_mul_ps(a, b)
#    define INFER_MLX_SUB(a, b)     _mm256_sub_ps(a, b)
#    define INFER_MLX_MAX(a, b)     _mm256_max_ps(a, b)
#    define INFER_MLX_NEAREST(a)    _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#    define INFER_MLX_TWO_TO(n)     _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23))
#    define INFER_MLX_SUM(v)        sum_of(v)
#    include "mlx_door_math_kernels.h"

const Math * math() {
    static const Math avx512 = { dots_avx512, sums_avx512, weights_avx512, unpack_avx2 };
    static const Math avx2   = { dots_avx2, sums_avx2, weights_avx2, unpack_avx2 };
    static const Math * const found = [] {
        const char * const most  = std::getenv(INFER_MLX_INSTRUCTIONS);
        const auto         names = [most](const char * set) { return most != nullptr && std::strcmp(most, set) == 0; };
        const bool none = names("none"), less = none || names("avx2");
        return !less && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? &avx512
               : !none && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")       ? &avx2
                                                                                                : nullptr;
    }();
    return found;
}

#else

struct Math {
    void (*dots)(Rows, Rows, float *, int64_t, int64_t, int64_t, int64_t);
    void (*sums)(Rows, Rows, float *, int64_t, int64_t, int64_t, int64_t);
    void (*weights)(float *, int64_t, float);
    void (*unpack)(const Packed &, int64_t, float *);
};
constexpr int64_t BLOCK = 96;

const Math * math() {
    return nullptr;
}

#endif

// What an array of the graph is in memory when it is computed: whole rows of `columns`, one behind the other.
array in_rows(const array & a, mlx::core::Stream stream) {
    return mlx::core::contiguous(a, false, stream);
}

// Puts numbers side by side that lie `down` and `across` from each other.
void copy_rows(const float * from, int64_t down, int64_t across, int64_t rows, int64_t columns, float * to) {
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            to[i * columns + j] = from[i * down + j * across];
        }
    }
}

// [..., m, k] times [k, n].
class Product : public mlx::core::Primitive {
public:
    explicit Product(mlx::core::Stream stream) : Primitive(stream) {}

    void eval_cpu(const std::vector<array> & inputs, std::vector<array> & outputs) override {
        outputs[0].set_data(memory_for(outputs[0].nbytes()));
        hand_over(stream(), inputs, outputs[0], [](const std::vector<array> & in, array & out) { multiply(in[0], in[1], out); });
    }

    void eval_gpu(const std::vector<array> &, std::vector<array> &) override { throw std::runtime_error("made for the CPU"); }

    const char * name() const override { return "Product"; }

private:
    static void multiply(const array & a, const array & b, array & out) {
        const int64_t depth = b.shape(0), columns = b.shape(1), rows = static_cast<int64_t>(out.size()) / columns;
        const Rows    left { a.data<float>(), depth };
        float *       to = out.data<float>();
        if (b.strides(0) == 1 || depth == 1) {
            // A matrix that is stored the other way round, as layers have theirs.
            return math()->dots(left, Rows { b.data<float>(), b.strides(1) }, to, columns, rows, columns, depth);
        }
        if (b.strides(1) == 1 || columns == 1) {
            return math()->sums(left, Rows { b.data<float>(), b.strides(0) }, to, columns, rows, columns, depth);
        }
        Scratch whole(depth, columns);
        copy_rows(b.data<float>(), b.strides(0), b.strides(1), depth, columns, whole.data());
        math()->sums(left, Rows { whole.data(), columns }, to, columns, rows, columns, depth);
    }
};

bool is_made_for(const array & a, mlx::core::Stream stream) {
    return on_cpu(stream) && math() != nullptr && a.dtype() == mlx::core::float32 && a.size() > 0;
}

// Whether `product` is made for these.
bool multiplies(const array & a, const array & b, mlx::core::Stream stream) {
    return is_made_for(a, stream) && is_made_for(b, stream) && a.ndim() >= 2 && b.ndim() == 2 && a.shape(-1) == b.shape(0);
}

array product(const array & a, const array & b, mlx::core::Stream stream) {
    Shape shape   = a.shape();
    shape.back()  = b.shape(1);
    bytes_of(shape, sizeof(float));
    return array(shape, mlx::core::float32, std::make_shared<Product>(stream), { in_rows(a, stream), b });
}

// [..., m, k] times [n, k] turned, whose numbers have a few bits.
class PackedProduct : public mlx::core::Primitive {
public:
    PackedProduct(mlx::core::Stream stream, int32_t group, int32_t bits) : Primitive(stream), group_(group), bits_(bits) {}

    void eval_cpu(const std::vector<array> & inputs, std::vector<array> & outputs) override {
        outputs[0].set_data(memory_for(outputs[0].nbytes()));
        hand_over(stream(), inputs, outputs[0], [group = group_, bits = bits_](const std::vector<array> & in, array & out) {
            // As many as the kernel of dot products looks at together.
            constexpr int64_t TOGETHER = 4;
            const int64_t depth = in[0].shape(-1), columns = in[1].shape(0), rows = static_cast<int64_t>(in[0].size()) / depth;
            const Packed  packed { in[1].data<uint8_t>(), in[2].data<float>(), in[3].data<float>(), depth, group, bits };
            Scratch       numbers(TOGETHER, depth);
            for (int64_t j = 0; j < columns; j += TOGETHER) {
                const int64_t wide = std::min(TOGETHER, columns - j);
                for (int64_t i = 0; i < wide; ++i) {
                    math()->unpack(packed, j + i, numbers.data() + i * depth);
                }
                math()->dots({ in[0].data<float>(), depth }, { numbers.data(), depth }, out.data<float>() + j, columns, rows, wide, depth);
            }
        });
    }

    void eval_gpu(const std::vector<array> &, std::vector<array> &) override { throw std::runtime_error("made for the CPU"); }

    const char * name() const override { return "PackedProduct"; }

private:
    int32_t group_;
    int32_t bits_;
};

// Whether `packed_product` is made for these; rows, scales and biases fit each other.
bool multiplies_packed(const array & x, const array & w, const array & scales, const array & biases, int32_t group, int32_t bits, mlx::core::Stream stream) {
    if (!is_made_for(x, stream) || !is_made_for(scales, stream) || !is_made_for(biases, stream) || w.dtype() != mlx::core::uint32) {
        return false;
    }
    const bool known = (group == 32 || group == 64 || group == 128) && bits >= 2 && bits <= 8 && bits != 7;
    const bool plain = x.ndim() >= 2 && w.ndim() == 2 && w.shape(0) > 0;
    return known && plain && int64_t(scales.shape(1)) * group == x.shape(-1) && int64_t(w.shape(1)) * 32 == int64_t(x.shape(-1)) * bits;
}

array packed_product(const array & x, const array & w, const array & scales, const array & biases, int32_t group, int32_t bits, mlx::core::Stream stream) {
    Shape shape  = x.shape();
    shape.back() = w.shape(0);
    bytes_of(shape, sizeof(float));
    std::vector<array> inputs;
    for (const array * input : { &x, &w, &scales, &biases }) {
        // Weights are, and need not be looked at each time.
        const bool in_place = input->status() == array::Status::available && input->flags().row_contiguous;
        inputs.push_back(in_place ? *input : in_rows(*input, stream));
    }
    return array(shape, mlx::core::float32, std::make_shared<PackedProduct>(stream, group, bits), std::move(inputs));
}

// softmax(q k^T scale) v, of q [batch, heads, length, dim], k and v [batch, heads of these, source, dim]. With `causal`, query i of L sees the keys up to
// S - L + i. A fourth input, if there is one, says for each query and key whether it is seen.
class Attend : public mlx::core::Primitive {
public:
    Attend(mlx::core::Stream stream, float scale, bool causal) : Primitive(stream), scale_(scale), causal_(causal) {}

    void eval_cpu(const std::vector<array> & inputs, std::vector<array> & outputs) override {
        outputs[0].set_data(memory_for(outputs[0].nbytes()));
        hand_over(stream(), inputs, outputs[0], [scale = scale_, causal = causal_](const std::vector<array> & in, array & out) {
            attend(in, out.data<float>(), scale, causal);
        });
    }

    void eval_gpu(const std::vector<array> &, std::vector<array> &) override { throw std::runtime_error("made for the CPU"); }

    const char * name() const override { return "Attend"; }

private:
    // Queries whose scores are kept at once.
    static constexpr int64_t TOGETHER = 48;

    static void attend(const std::vector<array> & in, float * out, float scale, bool causal) {
        const array & q      = in[0];
        const int64_t heads  = q.shape(1), shared = heads / in[1].shape(1);
        const bool *  mask   = in.size() > 3 ? in[3].data<bool>() : nullptr;
        std::optional<Scratch> copies[3];
        Scratch scores(std::min<int64_t>(TOGETHER, q.shape(2)), in[1].shape(2));
        for (int64_t batch = 0; batch < q.shape(0); ++batch) {
            for (int64_t head = 0; head < heads; ++head) {
                const Rows of_q = head_of(q, batch, head, copies[0]);
                const Rows of_k = head_of(in[1], batch, head / shared, copies[1]), of_v = head_of(in[2], batch, head / shared, copies[2]);
                const Shape sizes { q.shape(2), in[1].shape(2), q.shape(3), in[2].shape(3) };
                one_head(of_q, of_k, of_v, out, sizes, mask, scale, causal, scores.data());
                out += int64_t(q.shape(2)) * in[2].shape(3);
            }
        }
    }

    // The rows of a head; a copy of them where the numbers of a row do not lie side by side.
    static Rows head_of(const array & a, int64_t batch, int64_t head, std::optional<Scratch> & copy) {
        const float * from = a.data<float>() + batch * a.strides(0) + head * a.strides(1);
        if (a.strides(3) == 1 || a.shape(3) == 1) {
            return { from, a.strides(2) };
        }
        const int64_t rows = a.shape(2), width = a.shape(3);
        if (!copy) {
            copy.emplace(rows, width);
        }
        copy_rows(from, a.strides(2), a.strides(3), rows, width, copy->data());
        return { copy->data(), width };
    }

    // `sizes`: queries, keys, numbers of a key, numbers of a value. In `scores` is room for those of TOGETHER queries.
    static void one_head(Rows q, Rows k, Rows v, float * out, const Shape & sizes, const bool * mask, float scale, bool causal, float * scores) {
        const int64_t length = sizes[0], source = sizes[1], depth = sizes[2], width = sizes[3];
        for (int64_t from = 0; from < length; from += TOGETHER) {
            const int64_t rows = std::min(TOGETHER, length - from);
            // Nobody among them sees more than the last one does.
            const int64_t seen = causal ? source - length + from + rows : source;
            math()->dots({ q.data + from * q.step, q.step }, k, scores, seen, rows, seen, depth);
            for (int64_t i = 0; i < rows; ++i) {
                float *       row  = scores + i * seen;
                const int64_t last = causal ? seen - rows + i + 1 : seen;
                std::fill(row + last, row + seen, 0.0f);
                // As MLX has it: what is not seen has the least score there is, whatever the scale, so that who sees nothing has the mean of all.
                for (int64_t j = 0; mask != nullptr && j < last; ++j) {
                    row[j] = mask[(from + i) * source + j] ? row[j] * scale : std::numeric_limits<float>::lowest();
                }
                math()->weights(row, last, mask != nullptr ? 1.0f : scale);
            }
            math()->sums({ scores, seen }, v, out + from * width, width, rows, width, seen);
        }
    }

    float scale_;
    bool  causal_;
};

// Whether `attention` is made for these. `mask` may be NULL.
bool attends(const array & q, const array & k, const array & v, bool causal, const array * mask, mlx::core::Stream stream) {
    if (!is_made_for(q, stream) || !is_made_for(k, stream) || !is_made_for(v, stream)) {
        return false;
    }
    if (q.ndim() != 4 || k.ndim() != 4 || v.ndim() != 4 || q.shape(0) != k.shape(0) || k.shape(0) != v.shape(0)) {
        return false;
    }
    const bool fits = k.shape(1) == v.shape(1) && q.shape(1) % k.shape(1) == 0 && k.shape(2) == v.shape(2) && q.shape(3) == k.shape(3);
    const bool is_plain = mask == nullptr || (mask->dtype() == mlx::core::bool_ && mask->shape() == Shape { q.shape(2), k.shape(2) });
    return fits && is_plain && !(causal && q.shape(2) > k.shape(2));
}

array attention(const array & q, const array & k, const array & v, float scale, bool causal, const array * mask, mlx::core::Stream stream) {
    std::vector<array> inputs { q, k, v };
    if (mask != nullptr) {
        inputs.push_back(in_rows(*mask, stream));
    }
    const Shape shape { q.shape(0), q.shape(1), q.shape(2), v.shape(3) };
    bytes_of(shape, sizeof(float));
    return array(shape, mlx::core::float32, std::make_shared<Attend>(stream, scale, causal), std::move(inputs));
}

} // namespace

#endif // INFER_MLX_DOOR_MATH_H
