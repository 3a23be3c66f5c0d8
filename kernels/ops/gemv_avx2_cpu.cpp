// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <cstring>
#include <immintrin.h>

#include "kernels/ops/gemv.h"
#include "kernels/ops/mxfp4_format.h"

// As the AVX-512 kernels, with half the lanes. MXFP4 nibbles become the high and low bytes of BF16 by two byte shuffles,
// two groups at a time; the unpacking leaves 64 elements in the order of preparedIndexAvx2.

#define VITRINE_AVX2 __attribute__((target("avx2,fma,f16c")))
#define VITRINE_AVX2_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kDenseBlock = 16;
constexpr std::int64_t kMxfp4Block = 64;
constexpr std::int64_t kColumns = 8;
constexpr std::int64_t kScaleChunk = 128;
constexpr std::int64_t kLine = 64;

VITRINE_AVX2_INLINE __m256 evenBf16(__m256i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}
VITRINE_AVX2_INLINE __m256 oddBf16(__m256i bits) {
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

struct Bf16Weights {
    using Type = std::uint16_t;
    VITRINE_AVX2_INLINE static void load(const Type* p, __m256& first, __m256& second) {
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        first = evenBf16(bits);
        second = oddBf16(bits);
    }
    VITRINE_AVX2_INLINE static __m256 column(const Type* p) {
        return evenBf16(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
};

struct F16Weights {
    using Type = std::uint16_t;
    VITRINE_AVX2_INLINE static void load(const Type* p, __m256& first, __m256& second) {
        first = column(p);
        second = column(p + 8);
    }
    VITRINE_AVX2_INLINE static __m256 column(const Type* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
};

struct F32Weights {
    using Type = float;
    VITRINE_AVX2_INLINE static void load(const Type* p, __m256& first, __m256& second) {
        first = _mm256_loadu_ps(p);
        second = _mm256_loadu_ps(p + 8);
    }
    VITRINE_AVX2_INLINE static __m256 column(const Type* p) { return _mm256_loadu_ps(p); }
};

VITRINE_AVX2_INLINE float reduce(__m256 sums) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/// W neighbouring outputs by R rows of x. The bytes that the next call needs are prefetched at the same pace.
template <class Weights, int W, int R>
VITRINE_AVX2 void denseBlock(const typename Weights::Type* weights, std::int64_t stride, std::int64_t in,
                             const float* const* x, float* y) {
    __m256 sums[W][R];
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[w][r] = _mm256_setzero_ps();
        }
    }
    std::int64_t k = 0;
    for (; k + kDenseBlock <= in; k += kDenseBlock) {
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
            __m256 first;
            __m256 second;
            const typename Weights::Type* p = weights + w * stride + k;
            _mm_prefetch(reinterpret_cast<const char*>(p + W * stride), _MM_HINT_T0);
            Weights::load(p, first, second);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                sums[w][r] = _mm256_fmadd_ps(first, _mm256_loadu_ps(x[r] + k), sums[w][r]);
                sums[w][r] = _mm256_fmadd_ps(second, _mm256_loadu_ps(x[r] + k + 8), sums[w][r]);
            }
        }
    }
    if (k < in) {
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
            typename Weights::Type tail[kDenseBlock] = {};
            std::memcpy(tail, weights + w * stride + k, static_cast<std::size_t>(in - k) * sizeof(tail[0]));
            __m256 first;
            __m256 second;
            Weights::load(tail, first, second);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                sums[w][r] = _mm256_fmadd_ps(first, _mm256_loadu_ps(x[r] + k), sums[w][r]);
                sums[w][r] = _mm256_fmadd_ps(second, _mm256_loadu_ps(x[r] + k + 8), sums[w][r]);
            }
        }
    }
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            y[r * kGemvOutputs + w] = reduce(sums[w][r]);
        }
    }
}

template <class Weights, int W, int R> VITRINE_AVX2 void denseRows(const GemvCall& call) {
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

struct Mxfp4Tables {
    __m256i high;
    __m256i low;
};

/// The bytes of BF16 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
VITRINE_AVX2_INLINE Mxfp4Tables mxfp4Tables() {
    const __m128i high =
        _mm_setr_epi8(0x00, 0x3F, 0x3F, 0x3F, 0x40, 0x40, 0x40, 0x40, static_cast<char>(0x80), static_cast<char>(0xBF),
                      static_cast<char>(0xBF), static_cast<char>(0xBF), static_cast<char>(0xC0),
                      static_cast<char>(0xC0), static_cast<char>(0xC0), static_cast<char>(0xC0));
    const __m128i low =
        _mm_setr_epi8(0, 0, static_cast<char>(0x80), static_cast<char>(0xC0), 0, 0x40, static_cast<char>(0x80),
                      static_cast<char>(0xC0), 0, 0, static_cast<char>(0x80), static_cast<char>(0xC0), 0, 0x40,
                      static_cast<char>(0x80), static_cast<char>(0xC0));
    return {_mm256_broadcastsi128_si256(high), _mm256_broadcastsi128_si256(low)};
}

/// `count` scales as float32; the buffer is written in whole vectors.
VITRINE_AVX2_INLINE void expandScales(const std::uint8_t* scales, std::int64_t count, float* out) {
    for (std::int64_t g = 0; g < count; g += 8) {
        std::uint64_t bytes = 0;
        std::memcpy(&bytes, scales + g, static_cast<std::size_t>(count - g >= 8 ? 8 : count - g));
        const __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes)));
        const __m256i zero = _mm256_cmpeq_epi32(wide, _mm256_setzero_si256());
        const __m256i last = _mm256_cmpeq_epi32(wide, _mm256_set1_epi32(255));
        __m256i bits = _mm256_slli_epi32(wide, 23);
        bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x00400000), zero);
        bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7FC00000), last);
        _mm256_storeu_ps(out + g, _mm256_castsi256_ps(bits));
    }
}

template <int R>
VITRINE_AVX2_INLINE void addPairs(__m256i pairs, const float* const* x, std::int64_t k, __m256* parts) {
    const __m256 even = evenBf16(pairs);
    const __m256 odd = oddBf16(pairs);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        parts[r] = _mm256_fmadd_ps(even, _mm256_loadu_ps(x[r] + k), parts[r]);
        parts[r] = _mm256_fmadd_ps(odd, _mm256_loadu_ps(x[r] + k + 8), parts[r]);
    }
}

/// Two groups: sums += scale * their dot products.
template <int R>
VITRINE_AVX2_INLINE void mxfp4Groups(__m256i bytes, __m256 scales, const Mxfp4Tables& tables, const float* const* x,
                                     std::int64_t k, __m256* sums) {
    const __m256i mask = _mm256_set1_epi8(15);
    const __m256i lowNibbles = _mm256_and_si256(bytes, mask);
    const __m256i highNibbles = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
    __m256 parts[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        parts[r] = _mm256_setzero_ps();
    }
    const __m256i evenHigh = _mm256_shuffle_epi8(tables.high, lowNibbles);
    const __m256i evenLow = _mm256_shuffle_epi8(tables.low, lowNibbles);
    addPairs<R>(_mm256_unpacklo_epi8(evenLow, evenHigh), x, k, parts);
    addPairs<R>(_mm256_unpackhi_epi8(evenLow, evenHigh), x, k + 16, parts);
    const __m256i oddHigh = _mm256_shuffle_epi8(tables.high, highNibbles);
    const __m256i oddLow = _mm256_shuffle_epi8(tables.low, highNibbles);
    addPairs<R>(_mm256_unpacklo_epi8(oddLow, oddHigh), x, k + 32, parts);
    addPairs<R>(_mm256_unpackhi_epi8(oddLow, oddHigh), x, k + 48, parts);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
        sums[r] = _mm256_fmadd_ps(parts[r], scales, sums[r]);
    }
}

template <int W, int R>
VITRINE_AVX2 void mxfp4Block(const std::uint8_t* blocks, const std::uint8_t* scales, std::int64_t in,
                             const float* const* x, float* y) {
    const Mxfp4Tables tables = mxfp4Tables();
    const std::int64_t groups = in / kMxfp4Group;
    const std::int64_t stride = in / 2;
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    alignas(32) float expanded[W][kScaleChunk + 8];
    __m256 sums[W][R];
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[w][r] = _mm256_setzero_ps();
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
        for (std::int64_t g = 0; g < count; g += 2) {
            const float* const scaleAt = expanded[0] + g;
            const std::int64_t group = chunk + g;
            const bool both = g + 1 < count;
#pragma GCC unroll 8
            for (int w = 0; w < W; ++w) {
                const std::uint8_t* p = blocks + w * stride + group * 16;
                _mm_prefetch(reinterpret_cast<const char*>(p + W * stride), _MM_HINT_T0);
                // A group that is not there has no nibbles, and its scale is finite.
                const __m256i bytes =
                    both ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                         : _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
                const __m256 pair = _mm256_permutevar8x32_ps(_mm256_loadu_ps(scaleAt + w * (kScaleChunk + 8)), spread);
                mxfp4Groups<R>(bytes, pair, tables, x, group * kMxfp4Group, sums[w]);
            }
        }
    }
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            y[r * kGemvOutputs + w] = reduce(sums[w][r]);
        }
    }
}

template <int W, int R> VITRINE_AVX2 void mxfp4Rows(const GemvCall& call) {
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

/// Transposed storage: one stored row at a time, all outputs of the call; the sums stay in the first-level cache.
template <class Weights> VITRINE_AVX2 void sumColumns(const GemvCall& call) {
    alignas(32) float sums[kGemvRows][kGemvOutputs] = {};
    const auto* data = static_cast<const typename Weights::Type*>(call.matrix.data) + call.outBegin;
    const std::int64_t stride = call.matrix.stride;
    constexpr std::int64_t kAhead = 16;
    for (std::int64_t k = 0; k < call.matrix.in; ++k) {
        for (std::int64_t o = 0; o < call.outCount; o += kColumns) {
            const typename Weights::Type* p = data + k * stride + o;
            if (k + kAhead < call.matrix.in) {
                _mm_prefetch(reinterpret_cast<const char*>(p + kAhead * stride), _MM_HINT_T0);
            }
            typename Weights::Type tail[kColumns] = {};
            if (call.outCount - o < kColumns) {
                std::memcpy(tail, p, static_cast<std::size_t>(call.outCount - o) * sizeof(tail[0]));
                p = tail;
            }
            const __m256 values = Weights::column(p);
            for (std::int64_t r = 0; r < call.rows; ++r) {
                const __m256 sum = _mm256_load_ps(sums[r] + o);
                _mm256_store_ps(sums[r] + o, _mm256_fmadd_ps(values, _mm256_set1_ps(call.x[r][k]), sum));
            }
        }
    }
    for (std::int64_t r = 0; r < call.rows; ++r) {
        std::memcpy(call.y + r * kGemvOutputs, sums[r], static_cast<std::size_t>(call.outCount) * sizeof(float));
    }
}

/// Fewer outputs at a time with more rows: the sums fit sixteen registers.
template <class Weights> void dotRows(const GemvCall& call) {
    switch (call.rows) {
    case 1:
        return denseRows<Weights, 4, 1>(call);
    case 2:
        return denseRows<Weights, 4, 2>(call);
    case 3:
        return denseRows<Weights, 2, 3>(call);
    case 4:
        return denseRows<Weights, 2, 4>(call);
    case 5:
        return denseRows<Weights, 1, 5>(call);
    case 6:
        return denseRows<Weights, 1, 6>(call);
    case 7:
        return denseRows<Weights, 1, 7>(call);
    default:
        return denseRows<Weights, 1, 8>(call);
    }
}

void dotMxfp4(const GemvCall& call) {
    switch (call.rows) {
    case 1:
        return mxfp4Rows<4, 1>(call);
    case 2:
        return mxfp4Rows<2, 2>(call);
    case 3:
        return mxfp4Rows<1, 3>(call);
    case 4:
        return mxfp4Rows<1, 4>(call);
    case 5:
        return mxfp4Rows<1, 5>(call);
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

std::int64_t preparedIndexAvx2(DType dtype, std::int64_t i) {
    if (dtype == DType::BF16) {
        const std::int64_t block = i / kDenseBlock * kDenseBlock;
        return block + i % 2 * 8 + i % kDenseBlock / 2;
    }
    if (dtype == DType::F4) {
        const std::int64_t block = i / kMxfp4Block * kMxfp4Block;
        const std::int64_t lane = i % kMxfp4Block / kMxfp4Group; // which of the two groups
        const std::int64_t byte = i % kMxfp4Group / 2;           // of the group's sixteen
        const std::int64_t nibble = i % 2;
        return block + nibble * 32 + byte / 8 * 16 + byte % 2 * 8 + lane * 4 + byte % 8 / 2;
    }
    return i;
}

void gemvAvx2(const GemvCall& call) {
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
