// Rows of matrices whose numbers have a few bits, as numbers of 32: what mlx_door_math.h multiplies with.
#ifndef INFER_MLX_DOOR_PACKED_H
#define INFER_MLX_DOOR_PACKED_H

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#    include <immintrin.h>
#endif

namespace {

// A matrix of whole numbers of a few bits, row by row and without gaps, the first one lowest; with a scale and a bias for each group of them.
struct Packed {
    const uint8_t * data;
    const float *   scales;
    const float *   biases;
    int64_t         columns;
    int64_t         group;
    int32_t         bits;
};

#if defined(__x86_64__)

// Eight whole numbers. They are as many bytes as one has bits.
template <int BITS>
__attribute__((target("avx2,fma"))) inline __m256i eight(const uint8_t * from) {
    if constexpr (BITS == 8) {
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
    }
    uint64_t word = 0;
    std::memcpy(&word, from, BITS);
    // Four of them are 32 bits or fewer, and so are eight of up to 4.
    constexpr bool ALL = BITS <= 4;
    const __m256i  words = ALL ? _mm256_set1_epi32(static_cast<int32_t>(word))
                               : _mm256_set_m128i(_mm_set1_epi32(static_cast<int32_t>(word >> 4 * BITS)), _mm_set1_epi32(static_cast<int32_t>(word)));
    constexpr int  FIFTH = ALL ? 4 * BITS : 0;
    const __m256i  shifts =
        _mm256_setr_epi32(0, BITS, 2 * BITS, 3 * BITS, FIFTH, FIFTH + BITS, FIFTH + 2 * BITS, FIFTH + 3 * BITS);
    return _mm256_and_si256(_mm256_srlv_epi32(words, shifts), _mm256_set1_epi32((1 << BITS) - 1));
}

template <int BITS>
__attribute__((target("avx2,fma"))) void unpack_row(const Packed & packed, int64_t row, float * to) {
    const uint8_t * from   = packed.data + row * packed.columns / 8 * BITS;
    const int64_t   groups = packed.columns / packed.group;
    for (int64_t g = row * groups; g < (row + 1) * groups; ++g) {
        const __m256 scale = _mm256_set1_ps(packed.scales[g]), bias = _mm256_set1_ps(packed.biases[g]);
        for (int64_t i = 0; i < packed.group; i += 8, from += BITS, to += 8) {
            _mm256_storeu_ps(to, _mm256_fmadd_ps(_mm256_cvtepi32_ps(eight<BITS>(from)), scale, bias));
        }
    }
}

void unpack_avx2(const Packed & packed, int64_t row, float * to) {
    switch (packed.bits) {
        case 2:  return unpack_row<2>(packed, row, to);
        case 3:  return unpack_row<3>(packed, row, to);
        case 4:  return unpack_row<4>(packed, row, to);
        case 5:  return unpack_row<5>(packed, row, to);
        case 6:  return unpack_row<6>(packed, row, to);
        default: return unpack_row<8>(packed, row, to);
    }
}

#endif

} // namespace

#endif // INFER_MLX_DOOR_PACKED_H
