// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// g++ 12's own intrinsics header reads undefined vectors on purpose and warns about it (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <cstring>
#include <immintrin.h>

#include "kernels/ops/gemv.h"
#include "kernels/ops/mxfp4_format.h"

// Weights unpack in the order that is cheapest, and prepared rows of x have that order: BF16 pairs split into even and
// odd elements; sixteen dwords of MXFP4 nibbles give elements 0, 8, 16, ... then 1, 9, 17, ... of 128.

#define VITRINE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))
#define VITRINE_AVX512_INLINE                                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c"), always_inline)) inline

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kDenseBlock = 32;
constexpr std::int64_t kMxfp4Block = 128;
constexpr std::int64_t kColumns = 16;
constexpr std::int64_t kScaleChunk = 128;
constexpr std::int64_t kLine = 64;

struct Bf16Weights {
    using Type = std::uint16_t;
    VITRINE_AVX512_INLINE static void load(const Type* p, __m512& first, __m512& second) {
        const __m512i bits = _mm512_loadu_si512(p);
        first = _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
        second = _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
    }
    VITRINE_AVX512_INLINE static __m512 column(const Type* p, __mmask16 mask) {
        const __m512i wide = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
        return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
    }
};

struct F16Weights {
    using Type = std::uint16_t;
    VITRINE_AVX512_INLINE static void load(const Type* p, __m512& first, __m512& second) {
        first = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        second = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16)));
    }
    VITRINE_AVX512_INLINE static __m512 column(const Type* p, __mmask16 mask) {
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
    }
};

struct F32Weights {
    using Type = float;
    VITRINE_AVX512_INLINE static void load(const Type* p, __m512& first, __m512& second) {
        first = _mm512_loadu_ps(p);
        second = _mm512_loadu_ps(p + 16);
    }
    VITRINE_AVX512_INLINE static __m512 column(const Type* p, __mmask16 mask) { return _mm512_maskz_loadu_ps(mask, p); }
};

/// W neighbouring outputs by R rows of x. The bytes that the next call needs are prefetched at the same pace.
template <class Weights, int W, int R>
VITRINE_AVX512 void denseBlock(const typename Weights::Type* weights, std::int64_t stride, std::int64_t in,
                               const float* const* x, float* y) {
    __m512 sums[W][R];
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[w][r] = _mm512_setzero_ps();
        }
    }
    std::int64_t k = 0;
    for (; k + kDenseBlock <= in; k += kDenseBlock) {
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
            __m512 first;
            __m512 second;
            const typename Weights::Type* p = weights + w * stride + k;
            _mm_prefetch(reinterpret_cast<const char*>(p + W * stride), _MM_HINT_T0);
            Weights::load(p, first, second);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                sums[w][r] = _mm512_fmadd_ps(first, _mm512_loadu_ps(x[r] + k), sums[w][r]);
                sums[w][r] = _mm512_fmadd_ps(second, _mm512_loadu_ps(x[r] + k + 16), sums[w][r]);
            }
        }
    }
    if (k < in) {
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
            typename Weights::Type tail[kDenseBlock] = {};
            std::memcpy(tail, weights + w * stride + k, static_cast<std::size_t>(in - k) * sizeof(tail[0]));
            __m512 first;
            __m512 second;
            Weights::load(tail, first, second);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                sums[w][r] = _mm512_fmadd_ps(first, _mm512_loadu_ps(x[r] + k), sums[w][r]);
                sums[w][r] = _mm512_fmadd_ps(second, _mm512_loadu_ps(x[r] + k + 16), sums[w][r]);
            }
        }
    }
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            y[r * kGemvOutputs + w] = _mm512_reduce_add_ps(sums[w][r]);
        }
    }
}

template <class Weights, int W, int R> VITRINE_AVX512 void denseRows(const GemvCall& call) {
    const auto* data = static_cast<const typename Weights::Type*>(call.matrix.data);
    const std::int64_t stride = call.matrix.stride;
    std::int64_t o = 0;
    for (; o + W <= call.outCount; o += W) {
        denseBlock<Weights, W, R>(data + (call.outBegin + o) * stride, stride, call.matrix.in, call.x, call.y + o);
    }
    for (; o < call.outCount; ++o) {
        denseBlock<Weights, 1, R>(data + (call.outBegin + o) * stride, stride, call.matrix.in, call.x, call.y + o);
    }
}

/// `count` scales as float32; the buffer is written in whole vectors.
VITRINE_AVX512_INLINE void expandScales(const std::uint8_t* scales, std::int64_t count, float* out) {
    for (std::int64_t g = 0; g < count; g += 16) {
        const auto mask = static_cast<__mmask16>(count - g >= 16 ? 0xFFFFU : (1U << (count - g)) - 1U);
        const __m512i wide = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, scales + g));
        __m512i bits = _mm512_slli_epi32(wide, 23);
        bits = _mm512_mask_mov_epi32(bits, _mm512_testn_epi32_mask(wide, wide), _mm512_set1_epi32(0x00400000));
        bits = _mm512_mask_mov_epi32(bits, _mm512_cmpeq_epi32_mask(wide, _mm512_set1_epi32(255)),
                                     _mm512_set1_epi32(0x7FC00000));
        _mm512_storeu_ps(out + g, _mm512_castsi512_ps(bits));
    }
}

/// Four groups: sums += scale * (sum over the eight nibbles of each dword).
template <int R>
VITRINE_AVX512_INLINE void mxfp4Groups(__m512i nibbles, __m512 scales, __m512 table, const float* const* x,
                                       std::int64_t k, __m512* sums) {
    __m512 parts[R];
    const __m512 first = _mm512_permutexvar_ps(nibbles, table);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        parts[r] = _mm512_mul_ps(first, _mm512_loadu_ps(x[r] + k));
    }
#pragma GCC unroll 8
    for (int j = 1; j < 8; ++j) {
        const __m512 values = _mm512_permutexvar_ps(_mm512_srli_epi32(nibbles, static_cast<unsigned>(4 * j)), table);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            parts[r] = _mm512_fmadd_ps(values, _mm512_loadu_ps(x[r] + k + 16 * j), parts[r]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        sums[r] = _mm512_fmadd_ps(parts[r], scales, sums[r]);
    }
}

/// W neighbouring outputs by R rows of x. Scales are expanded a chunk at a time; one shuffle then spreads four of them
/// over the lanes of their groups. The bytes that the next call needs are prefetched at the same pace.
template <int W, int R>
VITRINE_AVX512 void mxfp4Block(const std::uint8_t* blocks, const std::uint8_t* scales, std::int64_t in,
                               const float* const* x, float* y) {
    const __m512 table = _mm512_loadu_ps(kE2M1);
    const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const std::int64_t groups = in / kMxfp4Group;
    const std::int64_t stride = in / 2;
    alignas(64) float expanded[W][kScaleChunk + 16];
    __m512 sums[W][R];
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[w][r] = _mm512_setzero_ps();
        }
    }
    for (std::int64_t chunk = 0; chunk < groups; chunk += kScaleChunk) {
        const std::int64_t count = groups - chunk < kScaleChunk ? groups - chunk : kScaleChunk;
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
            const std::uint8_t* const from = scales + w * groups + chunk;
            for (std::int64_t ahead = 0; ahead < count; ahead += kLine) {
                _mm_prefetch(reinterpret_cast<const char*>(from + W * groups + ahead), _MM_HINT_T0);
            }
            expandScales(from, count, expanded[w]);
        }
        for (std::int64_t g = 0; g < count; g += 4) {
            const float* const scaleAt = expanded[0] + g;
            const std::int64_t group = chunk + g;
            const std::int64_t left = count - g;
            const auto mask = static_cast<__mmask16>(left >= 4 ? 0xFFFFU : (1U << (4 * left)) - 1U);
#pragma GCC unroll 8
            for (int w = 0; w < W; ++w) {
                const std::uint8_t* p = blocks + w * stride + group * 16;
                _mm_prefetch(reinterpret_cast<const char*>(p + W * stride), _MM_HINT_T0);
                const __m512i nibbles = _mm512_maskz_loadu_epi32(mask, p);
                // Lanes past the last group have no nibbles, and whatever scale lies there must not make them NaN.
                const __m512 spreadScales =
                    _mm512_maskz_permutexvar_ps(mask, spread, _mm512_loadu_ps(scaleAt + w * (kScaleChunk + 16)));
                mxfp4Groups<R>(nibbles, spreadScales, table, x, group * kMxfp4Group, sums[w]);
            }
        }
    }
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            y[r * kGemvOutputs + w] = _mm512_reduce_add_ps(sums[w][r]);
        }
    }
}

template <int W, int R> VITRINE_AVX512 void mxfp4Rows(const GemvCall& call) {
    const auto* data = static_cast<const std::uint8_t*>(call.matrix.data);
    const std::int64_t stride = call.matrix.in / 2;
    const std::int64_t groups = call.matrix.in / kMxfp4Group;
    std::int64_t o = 0;
    for (; o + W <= call.outCount; o += W) {
        const std::int64_t row = call.outBegin + o;
        mxfp4Block<W, R>(data + row * stride, call.matrix.scales + row * groups, call.matrix.in, call.x, call.y + o);
    }
    for (; o < call.outCount; ++o) {
        const std::int64_t row = call.outBegin + o;
        mxfp4Block<1, R>(data + row * stride, call.matrix.scales + row * groups, call.matrix.in, call.x, call.y + o);
    }
}

/// Transposed storage: four stored rows at a time, all outputs of the call; the sums stay in the first-level cache.
template <class Weights> VITRINE_AVX512 void sumColumns(const GemvCall& call) {
    alignas(64) float sums[kGemvRows][kGemvOutputs] = {};
    const auto* data = static_cast<const typename Weights::Type*>(call.matrix.data) + call.outBegin;
    const std::int64_t stride = call.matrix.stride;
    constexpr std::int64_t kAhead = 16;
    for (std::int64_t k = 0; k < call.matrix.in; ++k) {
        for (std::int64_t o = 0; o < call.outCount; o += kColumns) {
            const std::int64_t left = call.outCount - o;
            const auto mask = static_cast<__mmask16>(left >= kColumns ? 0xFFFFU : (1U << left) - 1U);
            const typename Weights::Type* p = data + k * stride + o;
            if (k + kAhead < call.matrix.in) {
                _mm_prefetch(reinterpret_cast<const char*>(p + kAhead * stride), _MM_HINT_T0);
            }
            const __m512 values = Weights::column(p, mask);
            for (std::int64_t r = 0; r < call.rows; ++r) {
                const __m512 sum = _mm512_load_ps(sums[r] + o);
                _mm512_store_ps(sums[r] + o, _mm512_fmadd_ps(values, _mm512_set1_ps(call.x[r][k]), sum));
            }
        }
    }
    for (std::int64_t r = 0; r < call.rows; ++r) {
        std::memcpy(call.y + r * kGemvOutputs, sums[r], static_cast<std::size_t>(call.outCount) * sizeof(float));
    }
}

/// Fewer outputs at a time with more rows: sixteen sums fit the registers.
template <class Weights> void dotRows(const GemvCall& call) {
    switch (call.rows) {
    case 1:
        return denseRows<Weights, 4, 1>(call);
    case 2:
        return denseRows<Weights, 4, 2>(call);
    case 3:
        return denseRows<Weights, 4, 3>(call);
    case 4:
        return denseRows<Weights, 4, 4>(call);
    case 5:
        return denseRows<Weights, 2, 5>(call);
    case 6:
        return denseRows<Weights, 2, 6>(call);
    case 7:
        return denseRows<Weights, 2, 7>(call);
    default:
        return denseRows<Weights, 2, 8>(call);
    }
}

void dotMxfp4(const GemvCall& call) {
    switch (call.rows) {
    case 1:
        return mxfp4Rows<4, 1>(call);
    case 2:
        return mxfp4Rows<4, 2>(call);
    case 3:
        return mxfp4Rows<2, 3>(call);
    case 4:
        return mxfp4Rows<2, 4>(call);
    case 5:
        return mxfp4Rows<2, 5>(call);
    case 6:
        return mxfp4Rows<1, 6>(call);
    case 7:
        return mxfp4Rows<1, 7>(call);
    default:
        return mxfp4Rows<1, 8>(call);
    }
}

template <class Weights> void multiply(const GemvCall& call) {
    if (call.matrix.transposed) {
        sumColumns<Weights>(call);
    } else {
        dotRows<Weights>(call);
    }
}

} // namespace

std::int64_t preparedIndexAvx512(DType dtype, std::int64_t i) {
    if (dtype == DType::BF16) {
        const std::int64_t block = i / kDenseBlock * kDenseBlock;
        return block + i % 2 * 16 + i % kDenseBlock / 2;
    }
    if (dtype == DType::F4) {
        return i % 8 * 16 + i % kMxfp4Block / 8;
    }
    return i;
}

void gemvAvx512(const GemvCall& call) {
    switch (call.matrix.dtype) {
    case DType::F4:
        return dotMxfp4(call);
    case DType::BF16:
        return multiply<Bf16Weights>(call);
    case DType::F16:
        return multiply<F16Weights>(call);
    case DType::F32:
        return multiply<F32Weights>(call);
    default:
        return gemvScalar(call);
    }
}

} // namespace vitrine::kernels
