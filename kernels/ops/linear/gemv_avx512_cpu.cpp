// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// g++ 12's own intrinsics header reads undefined vectors on purpose and warns about it (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <immintrin.h>

#define VITRINE_SIMD __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define VITRINE_SIMD_INLINE VITRINE_SIMD __attribute__((always_inline)) inline

#include "kernels/ops/linear/dot_tile.h"

// Weights unpack in the order that is cheapest, and prepared rows of x have that order: BF16 pairs split into even and
// odd elements; sixteen dwords of MXFP4 nibbles give elements 0, 8, 16, ... then 1, 9, 17, ... of 128.

namespace vitrine::kernels {

namespace {

struct Avx512 {
    using Floats = __m512;
    using Tables = __m512;
    static constexpr std::int64_t kLanes = 16;
    static constexpr int kGroups = 4;
    static constexpr int denseOutputs(int rows) { return rows <= 4 ? 4 : 2; }
    static constexpr int mxfp4Outputs(int rows) { return rows <= 2 ? 4 : rows <= 5 ? 2 : 1; }
    static constexpr int kTileWide = 4;
    static constexpr int kTileRows = 4;

    VITRINE_SIMD_INLINE static __m512 load(const float* p) { return _mm512_loadu_ps(p); }
    VITRINE_SIMD_INLINE static __m512 broadcast(float value) { return _mm512_set1_ps(value); }
    VITRINE_SIMD_INLINE static void store(float* p, __m512 values) { _mm512_storeu_ps(p, values); }
    VITRINE_SIMD_INLINE static __m512 add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
    VITRINE_SIMD_INLINE static __m512 multiplyAdd(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
    VITRINE_SIMD_INLINE static float sum(__m512 values) { return _mm512_reduce_add_ps(values); }
    VITRINE_SIMD_INLINE static __mmask16 firstLanes(std::int64_t count) {
        return static_cast<__mmask16>(count >= kLanes ? 0xFFFFU : (1U << count) - 1U);
    }

    struct Bf16 {
        using Type = std::uint16_t;
        VITRINE_SIMD_INLINE static void load(const Type* p, __m512& first, __m512& second) {
            const __m512i bits = _mm512_loadu_si512(p);
            first = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
            second = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
        }
        VITRINE_SIMD_INLINE static __m512 column(const Type* p, std::int64_t count) {
            const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(firstLanes(count), p));
            return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
        }
    };

    struct F16 {
        using Type = std::uint16_t;
        VITRINE_SIMD_INLINE static void load(const Type* p, __m512& first, __m512& second) {
            first = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
            second = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16)));
        }
        VITRINE_SIMD_INLINE static __m512 column(const Type* p, std::int64_t count) {
            return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(firstLanes(count), p));
        }
    };

    struct F32 {
        using Type = float;
        VITRINE_SIMD_INLINE static void load(const Type* p, __m512& first, __m512& second) {
            first = _mm512_loadu_ps(p);
            second = _mm512_loadu_ps(p + 16);
        }
        VITRINE_SIMD_INLINE static __m512 column(const Type* p, std::int64_t count) {
            return _mm512_maskz_loadu_ps(firstLanes(count), p);
        }
    };

    VITRINE_SIMD_INLINE static __m512 bytes(const std::uint8_t* p, std::int64_t count) {
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(firstLanes(count), p)));
    }

    /// A group at a time: its sixteen possible weights are a table. Lanes 4 q to 4 q + 3 hold the group's four dwords,
    /// of which they take nibble q, and then nibble q + 4.
    struct Int4 {
        static constexpr int kBits = 4;
        static constexpr int kVectors = 2;
        static constexpr float kZero = middleCode(kBits);
        VITRINE_SIMD_INLINE static void load(const std::uint8_t* p, std::int64_t, const float* scales,
                                             const float* zeros, __m512* values) {
            const __m512 codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            const __m512i shifts = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12);
            const __m512i dwords = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
            const __m512 table = _mm512_mul_ps(_mm512_sub_ps(codes, _mm512_set1_ps(*zeros)), _mm512_set1_ps(*scales));
            const __m512i nibbles = _mm512_srlv_epi32(dwords, shifts);
            values[0] = _mm512_permutexvar_ps(nibbles, table);
            values[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(nibbles, 16), table);
        }
    };

    struct Int8 {
        static constexpr int kBits = 8;
        static constexpr int kVectors = 2;
        static constexpr float kZero = middleCode(kBits);
        VITRINE_SIMD_INLINE static void load(const std::uint8_t* p, std::int64_t, const float* scales,
                                             const float* zeros, __m512* values) {
            const __m512 scale = _mm512_set1_ps(*scales);
            const __m512 zero = _mm512_set1_ps(*zeros);
            values[0] = _mm512_mul_ps(_mm512_sub_ps(bytes(p, kLanes), zero), scale);
            values[1] = _mm512_mul_ps(_mm512_sub_ps(bytes(p + kLanes, kLanes), zero), scale);
        }
    };

    /// E4M3 is F16 with fewer bits and other exponents: shifted into its place a weight is 256 times too small.
    struct Fp8 {
        static constexpr int kBits = 8;
        static constexpr int kVectors = 2;
        static constexpr float kZero = 0;
        VITRINE_SIMD_INLINE static void load(const std::uint8_t* p, std::int64_t, const float* scales, const float*,
                                             __m512* values) {
            const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
            const __m256i magnitudes = _mm256_or_si256(codes, _mm256_set1_epi8(static_cast<char>(0x80)));
            const __mmask32 nan = _mm256_cmpeq_epi8_mask(magnitudes, _mm256_set1_epi8(-1));
            const __m512i shifted = _mm512_slli_epi16(_mm512_cvtepi8_epi16(codes), 7); // the sign stands twice
            __m512i halves = _mm512_and_si512(shifted, _mm512_set1_epi16(static_cast<short>(0xBFFF)));
            halves = _mm512_mask_mov_epi16(halves, nan, _mm512_set1_epi16(0x7E00));
            const __m512 scale = _mm512_set1_ps(*scales * 256);
            values[0] = _mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)), scale);
            values[1] = _mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)), scale);
        }
    };

    VITRINE_SIMD_INLINE static __m512 tables() { return _mm512_loadu_ps(kE2M1); }

    /// `count` scales as float32; the buffer is written in whole vectors.
    VITRINE_SIMD_INLINE static void expandScales(const std::uint8_t* scales, std::int64_t count, float* out) {
        for (std::int64_t g = 0; g < count; g += kLanes) {
            const __m512i wide = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(firstLanes(count - g), scales + g));
            __m512i bits = _mm512_slli_epi32(wide, 23);
            bits = _mm512_mask_mov_epi32(bits, _mm512_testn_epi32_mask(wide, wide), _mm512_set1_epi32(0x00400000));
            bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(wide, _mm512_set1_epi32(255)),
                                         _mm512_set1_epi32(0x7FC00000));
            _mm512_storeu_ps(out + g, _mm512_castsi512_ps(bits));
        }
    }

    /// The nibbles of up to four groups, eight to a lane, and each lane's scale. Lanes past the last group have no
    /// nibbles, and whatever scale lies there must not make them NaN.
    struct Groups {
        VITRINE_SIMD_INLINE Groups(const std::uint8_t* blocks, std::int64_t groups, const float* scales) {
            const __mmask16 mask = firstLanes(groups >= kGroups ? kLanes : 4 * groups);
            const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
            nibbles = _mm512_maskz_loadu_epi32(mask, blocks);
            laneScales = _mm512_maskz_permutexvar_ps(mask, spread, _mm512_loadu_ps(scales));
        }
        /// Element j of each lane, not scaled.
        VITRINE_SIMD_INLINE __m512 values(int j, __m512 table) const {
            return _mm512_permutexvar_ps(_mm512_srli_epi32(nibbles, static_cast<unsigned>(4 * j)), table);
        }
        __m512i nibbles;
        __m512 laneScales;
    };

    /// Up to four groups: sums += scale * (sum over the eight nibbles of each dword).
    template <int R>
    VITRINE_SIMD_INLINE static void addGroups(const std::uint8_t* blocks, std::int64_t groups, const float* scales,
                                              __m512 table, const float* const* x, std::int64_t k, __m512* sums) {
        const Groups some(blocks, groups, scales);
        __m512 parts[R];
        const __m512 first = some.values(0, table);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            parts[r] = _mm512_mul_ps(first, _mm512_loadu_ps(x[r] + k));
        }
#pragma GCC unroll 8
        for (int j = 1; j < 8; ++j) {
            const __m512 values = some.values(j, table);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                parts[r] = _mm512_fmadd_ps(values, _mm512_loadu_ps(x[r] + k + 16 * j), parts[r]);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[r] = _mm512_fmadd_ps(parts[r], some.laneScales, sums[r]);
        }
    }

    VITRINE_SIMD_INLINE static void expandGroups(const std::uint8_t* blocks, std::int64_t groups, const float* scales,
                                                 __m512 table, float* out) {
        const Groups some(blocks, groups, scales);
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) {
            store(out + j * kLanes, _mm512_mul_ps(some.values(j, table), some.laneScales));
        }
    }
};

} // namespace

std::int64_t preparedIndexAvx512(const MatrixRef& matrix, std::int64_t i) {
    if (matrix.dtype == DType::BF16) {
        const std::int64_t block = i / 32 * 32;
        return block + i % 2 * 16 + i % 32 / 2;
    }
    if (matrix.format == WeightFormat::Mxfp4) {
        return i % 8 * 16 + i % 128 / 8;
    }
    if (matrix.format == WeightFormat::Int4 && readsPackedGroups(matrix)) {
        const std::int64_t nibble = i % 8; // of a dword
        return i / 32 * 32 + nibble / 4 * 16 + nibble % 4 * 4 + i % 32 / 8;
    }
    return i;
}

void gemvAvx512(const GemvCall& call) {
    multiplyRows<Avx512>(call);
}

void addDotsAvx512(const DotTileCall& call) {
    addDots<Avx512>(call);
}

void sumDotsAvx512(const DotTileCall& call, float* sums) {
    sumDots<Avx512>(call, sums);
}

} // namespace vitrine::kernels
