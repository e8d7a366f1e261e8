// The kernels of one instruction set, whose vectors INFER_MLX_V and the macros beside it are. Read once for each by mlx_door_math.h: no guard.

// c[i][j] = a[i] . b[j], of `R` rows of a and `C` rows of b.
template <int R, int C>
INFER_MLX_TARGET void INFER_MLX_NAME(dots_tile)(Rows a, Rows b, float * c, int64_t step, int64_t depth) {
    INFER_MLX_V sum[R][C];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) {
            sum[i][j] = INFER_MLX_ZERO();
        }
    }
    int64_t k = 0;
    for (; k + INFER_MLX_WIDE <= depth; k += INFER_MLX_WIDE) {
        INFER_MLX_V right[C];
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) {
            right[j] = INFER_MLX_LOAD(b.data + j * b.step + k);
        }
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            const INFER_MLX_V left = INFER_MLX_LOAD(a.data + i * a.step + k);
#pragma GCC unroll 8
            for (int j = 0; j < C; ++j) {
                sum[i][j] = INFER_MLX_FMA(left, right[j], sum[i][j]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) {
            float one = INFER_MLX_SUM(sum[i][j]);
            for (int64_t rest = k; rest < depth; ++rest) {
                one += a.data[i * a.step + rest] * b.data[j * b.step + rest];
            }
            c[i * step + j] = one;
        }
    }
}

// c[i] = sum over k of a[i][k] b[k], of `R` rows of a and `C` vectors of each row of b.
template <int R, int C>
INFER_MLX_TARGET void INFER_MLX_NAME(sums_tile)(Rows a, Rows b, float * c, int64_t step, int64_t depth) {
    INFER_MLX_V sum[R][C];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) {
            sum[i][j] = INFER_MLX_ZERO();
        }
    }
    for (int64_t k = 0; k < depth; ++k) {
        INFER_MLX_V right[C];
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) {
            right[j] = INFER_MLX_LOAD(b.data + k * b.step + j * INFER_MLX_WIDE);
        }
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
            const INFER_MLX_V left = INFER_MLX_ALL(a.data[i * a.step + k]);
#pragma GCC unroll 8
            for (int j = 0; j < C; ++j) {
                sum[i][j] = INFER_MLX_FMA(left, right[j], sum[i][j]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < C; ++j) {
            INFER_MLX_STORE(c + i * step + j * INFER_MLX_WIDE, sum[i][j]);
        }
    }
}

using INFER_MLX_NAME(Tile) = void (*)(Rows, Rows, float *, int64_t, int64_t);

// One tile for each number of rows up to INFER_MLX_TALL and of columns up to 4.
template <size_t... N>
constexpr std::array<INFER_MLX_NAME(Tile), sizeof...(N)> INFER_MLX_NAME(dots_tiles)(std::index_sequence<N...>) {
    return { INFER_MLX_NAME(dots_tile)<N / 4 + 1, N % 4 + 1>... };
}

template <size_t... N>
constexpr std::array<INFER_MLX_NAME(Tile), sizeof...(N)> INFER_MLX_NAME(sums_tiles)(std::index_sequence<N...>) {
    return { INFER_MLX_NAME(sums_tile)<N / 4 + 1, N % 4 + 1>... };
}

void INFER_MLX_NAME(dots)(Rows a, Rows b, float * c, int64_t step, int64_t rows, int64_t columns, int64_t depth) {
    static constexpr auto tiles = INFER_MLX_NAME(dots_tiles)(std::make_index_sequence<INFER_MLX_TALL * 4>());
    for (int64_t block = 0; block < rows; block += BLOCK) {
        const int64_t end = std::min(rows, block + BLOCK);
        for (int64_t j = 0; j < columns; j += 4) {
            const int64_t wide = std::min<int64_t>(4, columns - j);
            for (int64_t i = block; i < end; i += INFER_MLX_TALL) {
                const int64_t tall = std::min<int64_t>(INFER_MLX_TALL, end - i);
                tiles[(tall - 1) * 4 + wide - 1]({ a.data + i * a.step, a.step }, { b.data + j * b.step, b.step }, c + i * step + j, step, depth);
            }
        }
    }
}

void INFER_MLX_NAME(sums)(Rows a, Rows b, float * c, int64_t step, int64_t rows, int64_t columns, int64_t depth) {
    static constexpr auto tiles = INFER_MLX_NAME(sums_tiles)(std::make_index_sequence<INFER_MLX_TALL * 4>());
    const int64_t whole = columns - columns % INFER_MLX_WIDE;
    for (int64_t j = 0; j < whole; j += 4 * INFER_MLX_WIDE) {
        const int64_t wide = std::min<int64_t>(4, (whole - j) / INFER_MLX_WIDE);
        for (int64_t i = 0; i < rows; i += INFER_MLX_TALL) {
            const int64_t tall = std::min<int64_t>(INFER_MLX_TALL, rows - i);
            tiles[(tall - 1) * 4 + wide - 1]({ a.data + i * a.step, a.step }, { b.data + j, b.step }, c + i * step + j, step, depth);
        }
    }
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = whole; j < columns; ++j) {
            float one = 0;
            for (int64_t k = 0; k < depth; ++k) {
                one += a.data[i * a.step + k] * b.data[k * b.step + j];
            }
            c[i * step + j] = one;
        }
    }
}

// e^x for x up to 0, within 2 units in the last place; 0 below -87.7, and no number where x is none. As infer-core's sampler has it: x = n ln 2 + r,
// the reduction in two steps (Cody and Waite), e^r by a polynomial.
INFER_MLX_TARGET inline INFER_MLX_V INFER_MLX_NAME(power)(INFER_MLX_V x) {
    x = INFER_MLX_MAX(INFER_MLX_ALL(-88.0f), x);
    const INFER_MLX_V n = INFER_MLX_NEAREST(INFER_MLX_MUL(x, INFER_MLX_ALL(1.44269504f)));
    INFER_MLX_V r = INFER_MLX_FMA(n, INFER_MLX_ALL(-0.6933594f), x);
    r = INFER_MLX_FMA(n, INFER_MLX_ALL(2.1219444e-4f), r);
    INFER_MLX_V p = INFER_MLX_ALL(1.3926213e-3f);
    p = INFER_MLX_FMA(p, r, INFER_MLX_ALL(8.363203e-3f));
    p = INFER_MLX_FMA(p, r, INFER_MLX_ALL(4.1666554e-2f));
    p = INFER_MLX_FMA(p, r, INFER_MLX_ALL(1.6666577e-1f));
    p = INFER_MLX_FMA(p, r, INFER_MLX_ALL(0.5f));
    p = INFER_MLX_ADD(INFER_MLX_FMA(INFER_MLX_MUL(p, r), r, r), INFER_MLX_ALL(1.0f));
    return INFER_MLX_MUL(p, INFER_MLX_TWO_TO(n));
}

// Turns scores into weights: e^(score scale) over the sum of all.
INFER_MLX_TARGET void INFER_MLX_NAME(weights)(float * scores, int64_t count, float scale) {
    float largest = -INFINITY;
    for (int64_t j = 0; j < count; ++j) {
        scores[j] *= scale;
        largest = scores[j] > largest ? scores[j] : largest;
    }
    INFER_MLX_V sums = INFER_MLX_ZERO();
    int64_t     j    = 0;
    for (; j + INFER_MLX_WIDE <= count; j += INFER_MLX_WIDE) {
        const INFER_MLX_V weight = INFER_MLX_NAME(power)(INFER_MLX_SUB(INFER_MLX_LOAD(scores + j), INFER_MLX_ALL(largest)));
        INFER_MLX_STORE(scores + j, weight);
        sums = INFER_MLX_ADD(sums, weight);
    }
    float sum = INFER_MLX_SUM(sums);
    if (j < count) {
        float rest[INFER_MLX_WIDE];
        std::fill(rest, rest + INFER_MLX_WIDE, largest - 100.0f);
        std::copy(scores + j, scores + count, rest);
        INFER_MLX_STORE(rest, INFER_MLX_NAME(power)(INFER_MLX_SUB(INFER_MLX_LOAD(rest), INFER_MLX_ALL(largest))));
        for (int64_t i = 0; j + i < count; ++i) {
            scores[j + i] = rest[i];
            sum += rest[i];
        }
    }
    const float share = 1.0f / sum;
    for (j = 0; j < count; ++j) {
        scores[j] *= share;
    }
}

#undef INFER_MLX_V
#undef INFER_MLX_TARGET
#undef INFER_MLX_WIDE
#undef INFER_MLX_TALL
#undef INFER_MLX_NAME
#undef INFER_MLX_ZERO
#undef INFER_MLX_ALL
#undef INFER_MLX_LOAD
#undef INFER_MLX_STORE
#undef INFER_MLX_FMA
#undef INFER_MLX_ADD
#undef INFER_MLX_MUL
#undef INFER_MLX_SUB
#undef INFER_MLX_MAX
#undef INFER_MLX_NEAREST
#undef INFER_MLX_TWO_TO
#undef INFER_MLX_SUM
