// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <immintrin.h>

#define VITRINE_SIMD __attribute__((target("avx2,fma,f16c")))
#define VITRINE_SIMD_INLINE VITRINE_SIMD __attribute__((always_inline)) inline

#include "kernels/ops/linear/dot_tile.h"

// As the AVX-512 kernels, with half the lanes. MXFP4 nibbles become the high and low bytes of BF16 by two byte
// shuffles, two groups at a time; the unpacking leaves 64 elements in the order of preparedIndexAvx2.

namespace vitrine::kernels {

namespace {

VITRINE_SIMD_INLINE __m256 evenBf16(__m256i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}
VITRINE_SIMD_INLINE __m256 oddBf16(__m256i bits) {
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
}
VITRINE_SIMD_INLINE __m128i eightWords(const std::uint16_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

struct Avx2 {
    using Floats = __m256;
    /// The bytes of BF16 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    struct Tables {
        __m256i high;
        __m256i low;
    };
    static constexpr std::int64_t kLanes = 8;
    static constexpr int kGroups = 2;
    static constexpr int denseOutputs(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 2 : 1; }
    static constexpr int mxfp4Outputs(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
    static constexpr int kTileWide = 4;
    static constexpr int kTileRows = 3;

    VITRINE_SIMD_INLINE static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
    VITRINE_SIMD_INLINE static __m256 broadcast(float value) { return _mm256_set1_ps(value); }
    VITRINE_SIMD_INLINE static void store(float* p, __m256 values) { _mm256_storeu_ps(p, values); }
    VITRINE_SIMD_INLINE static __m256 add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
    VITRINE_SIMD_INLINE static __m256 multiplyAdd(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
    VITRINE_SIMD_INLINE static float sum(__m256 values) {
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(values), _mm256_extractf128_ps(values, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    }

    /// The eight values at p, or the first `count` of them and zeros.
    template <class T> struct Eight {
        VITRINE_SIMD_INLINE Eight(const T* p, std::int64_t count) : at(p) {
            if (count < kLanes) {
                std::memcpy(padded, p, static_cast<std::size_t>(count) * sizeof(T));
                at = padded;
            }
        }
        const T* at;
        T padded[kLanes] = {};
    };

    struct Bf16 {
        using Type = std::uint16_t;
        VITRINE_SIMD_INLINE static void load(const Type* p, __m256& first, __m256& second) {
            const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
            first = evenBf16(bits);
            second = oddBf16(bits);
        }
        VITRINE_SIMD_INLINE static __m256 column(const Type* p, std::int64_t count) {
            return evenBf16(_mm256_cvtepu16_epi32(eightWords(Eight<Type>(p, count).at)));
        }
    };

    struct F16 {
        using Type = std::uint16_t;
        VITRINE_SIMD_INLINE static void load(const Type* p, __m256& first, __m256& second) {
            first = _mm256_cvtph_ps(eightWords(p));
            second = _mm256_cvtph_ps(eightWords(p + 8));
        }
        VITRINE_SIMD_INLINE static __m256 column(const Type* p, std::int64_t count) {
            return _mm256_cvtph_ps(eightWords(Eight<Type>(p, count).at));
        }
    };

    struct F32 {
        using Type = float;
        VITRINE_SIMD_INLINE static void load(const Type* p, __m256& first, __m256& second) {
            first = _mm256_loadu_ps(p);
            second = _mm256_loadu_ps(p + 8);
        }
        VITRINE_SIMD_INLINE static __m256 column(const Type* p, std::int64_t count) {
            return _mm256_loadu_ps(Eight<Type>(p, count).at);
        }
    };

    VITRINE_SIMD_INLINE static Tables tablesOf(const std::uint8_t* high, const std::uint8_t* low) {
        return {_mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(high))),
                _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(low)))};
    }
    VITRINE_SIMD_INLINE static Tables tables() {
        alignas(16) static constexpr std::uint8_t kHigh[16] = {0x00, 0x3F, 0x3F, 0x3F, 0x40, 0x40, 0x40, 0x40,
                                                               0x80, 0xBF, 0xBF, 0xBF, 0xC0, 0xC0, 0xC0, 0xC0};
        alignas(16) static constexpr std::uint8_t kLow[16] = {0, 0, 0x80, 0xC0, 0, 0x40, 0x80, 0xC0,
                                                              0, 0, 0x80, 0xC0, 0, 0x40, 0x80, 0xC0};
        return tablesOf(kHigh, kLow);
    }

    /// Eight bytes at p as integers.
    VITRINE_SIMD_INLINE static __m256i wideBytes(const std::uint8_t* p) {
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    }
    VITRINE_SIMD_INLINE static __m256 bytes(const std::uint8_t* p, std::int64_t count) {
        return _mm256_cvtepi32_ps(wideBytes(Eight<std::uint8_t>(p, count).at));
    }

    /// `count` scales as float32; the buffer is written in whole vectors.
    VITRINE_SIMD_INLINE static void expandScales(const std::uint8_t* scales, std::int64_t count, float* out) {
        for (std::int64_t g = 0; g < count; g += kLanes) {
            const __m256i wide = wideBytes(Eight<std::uint8_t>(scales + g, count - g).at);
            const __m256i zero = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
            const __m256i last = _mm256_cmpeq_epi32(wide, _mm256_set1_epi32(255));
            __m256i bits = _mm256_slli_epi32(wide, 23);
            bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x00400000), zero);
            bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7FC00000), last);
            _mm256_storeu_ps(out + g, _mm256_castsi256_ps(bits));
        }
    }

    /// BF16 elements of two groups or one, by pairs, in the order of the prepared x.
    struct Pairs {
        __m256i of[4];
    };
    VITRINE_SIMD_INLINE static Pairs pairsOf(const std::uint8_t* blocks, std::int64_t groups, const Tables& tables) {
        // A group that is not there has no nibbles, and its scale is finite.
        const __m256i bytes = groups >= kGroups
                                  ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(blocks))
                                  : _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(blocks)));
        const __m256i mask = _mm256_set1_epi8(15);
        const __m256i lowNibbles = _mm256_and_si256(bytes, mask);
        const __m256i highNibbles = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
        const __m256i evenHigh = _mm256_shuffle_epi8(tables.high, lowNibbles);
        const __m256i evenLow = _mm256_shuffle_epi8(tables.low, lowNibbles);
        const __m256i oddHigh = _mm256_shuffle_epi8(tables.high, highNibbles);
        const __m256i oddLow = _mm256_shuffle_epi8(tables.low, highNibbles);
        return {{_mm256_unpacklo_epi8(evenLow, evenHigh), _mm256_unpackhi_epi8(evenLow, evenHigh),
                 _mm256_unpacklo_epi8(oddLow, oddHigh), _mm256_unpackhi_epi8(oddLow, oddHigh)}};
    }
    /// Each group's scale in its lanes.
    VITRINE_SIMD_INLINE static __m256 spreadScales(const float* scales) {
        const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
        return _mm256_permutevar8x32_ps(_mm256_loadu_ps(scales), spread);
    }

    template <int R>
    VITRINE_SIMD_INLINE static void addPairs(__m256i pairs, const float* const* x, std::int64_t k, __m256* parts) {
        const __m256 even = evenBf16(pairs);
        const __m256 odd = oddBf16(pairs);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            parts[r] = _mm256_fmadd_ps(even, _mm256_loadu_ps(x[r] + k), parts[r]);
            parts[r] = _mm256_fmadd_ps(odd, _mm256_loadu_ps(x[r] + k + 8), parts[r]);
        }
    }

    /// Two groups or one: sums += scale * their dot products.
    template <int R>
    VITRINE_SIMD_INLINE static void addGroups(const std::uint8_t* blocks, std::int64_t groups, const float* scales,
                                              const Tables& tables, const float* const* x, std::int64_t k,
                                              __m256* sums) {
        const Pairs pairs = pairsOf(blocks, groups, tables);
        const __m256 laneScales = spreadScales(scales);
        __m256 parts[R] = {};
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            addPairs<R>(pairs.of[j], x, k + 16 * j, parts);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[r] = _mm256_fmadd_ps(parts[r], laneScales, sums[r]);
        }
    }

    VITRINE_SIMD_INLINE static void expandGroups(const std::uint8_t* blocks, std::int64_t groups, const float* scales,
                                                 const Tables& tables, float* out) {
        const Pairs pairs = pairsOf(blocks, groups, tables);
        const __m256 laneScales = spreadScales(scales);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            store(out + 16 * j, _mm256_mul_ps(evenBf16(pairs.of[j]), laneScales));
            store(out + 16 * j + kLanes, _mm256_mul_ps(oddBf16(pairs.of[j]), laneScales));
        }
    }

    /// Nibbles become BF16 codes as those of MXFP4 do, two groups at a time.
    struct Int4 {
        static constexpr int kBits = 4;
        static constexpr int kVectors = 8;
        static constexpr float kZero = middleCode(kBits);
        VITRINE_SIMD_INLINE static void load(const std::uint8_t* p, std::int64_t groups, const float* scales,
                                             const float* zeros, __m256* values) {
            alignas(16) static constexpr std::uint8_t kHigh[16] = {0x00, 0x3F, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40,
                                                                   0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41, 0x41};
            alignas(16) static constexpr std::uint8_t kLow[16] = {0x00, 0x80, 0x00, 0x40, 0x80, 0xA0, 0xC0, 0xE0,
                                                                  0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70};
            const Pairs pairs = pairsOf(p, groups, tablesOf(kHigh, kLow));
            const __m256 laneScales = spreadScales(scales);
            const __m256 laneZeros = spreadScales(zeros);
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                values[2 * j] = _mm256_mul_ps(_mm256_sub_ps(evenBf16(pairs.of[j]), laneZeros), laneScales);
                values[2 * j + 1] = _mm256_mul_ps(_mm256_sub_ps(oddBf16(pairs.of[j]), laneZeros), laneScales);
            }
        }
    };

    struct Int8 {
        static constexpr int kBits = 8;
        static constexpr int kVectors = 4;
        static constexpr float kZero = middleCode(kBits);
        VITRINE_SIMD_INLINE static void load(const std::uint8_t* p, std::int64_t, const float* scales,
                                             const float* zeros, __m256* values) {
            const __m256 scale = _mm256_set1_ps(*scales);
            const __m256 zero = _mm256_set1_ps(*zeros);
#pragma GCC unroll 4
            for (int v = 0; v < kVectors; ++v) {
                values[v] = _mm256_mul_ps(_mm256_sub_ps(_mm256_cvtepi32_ps(wideBytes(p + v * kLanes)), zero), scale);
            }
        }
    };

    /// E4M3 is F16 with fewer bits and other exponents: shifted into its place a weight is 256 times too small.
    struct Fp8 {
        static constexpr int kBits = 8;
        static constexpr int kVectors = 4;
        static constexpr float kZero = 0;
        VITRINE_SIMD_INLINE static void load(const std::uint8_t* p, std::int64_t, const float* scales, const float*,
                                             __m256* values) {
            const __m256i magnitude = _mm256_set1_epi16(0x7F);
            const __m256 scale = _mm256_set1_ps(*scales * 256);
#pragma GCC unroll 2
            for (int part = 0; part < 2; ++part) {
                const __m256i words =
                    _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16 * part)));
                const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(words, magnitude), magnitude);
                const __m256i shifted = _mm256_slli_epi16(words, 7); // the sign stands twice
                __m256i halves = _mm256_and_si256(shifted, _mm256_set1_epi16(static_cast<short>(0xBFFF)));
                halves = _mm256_or_si256(halves, _mm256_and_si256(nan, _mm256_set1_epi16(0x7E00)));
                values[2 * part] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), scale);
                values[2 * part + 1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), scale);
            }
        }
    };
};

} // namespace

std::int64_t preparedIndexAvx2(const MatrixRef& matrix, std::int64_t i) {
    if (matrix.dtype == DType::BF16) {
        const std::int64_t block = i / 16 * 16;
        return block + i % 2 * 8 + i % 16 / 2;
    }
    if (matrix.format == WeightFormat::Mxfp4 || (matrix.format == WeightFormat::Int4 && readsPackedGroups(matrix))) {
        const std::int64_t block = i / 64 * 64;
        const std::int64_t lane = i % 64 / kMxfp4Group; // which of the two groups
        const std::int64_t byte = i % kMxfp4Group / 2;  // of the group's sixteen
        const std::int64_t nibble = i % 2;
        return block + nibble * 32 + byte / 8 * 16 + byte % 2 * 8 + lane * 4 + byte % 8 / 2;
    }
    return i;
}

void gemvAvx2(const GemvCall& call) {
    multiplyRows<Avx2>(call);
}

void addDotsAvx2(const DotTileCall& call) {
    addDots<Avx2>(call);
}

void sumDotsAvx2(const DotTileCall& call, float* sums) {
    sumDots<Avx2>(call, sums);
}

} // namespace vitrine::kernels
