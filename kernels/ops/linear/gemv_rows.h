// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The loops around dot products: which outputs share a pass over rows of x, tails, chunks of MXFP4 scales, prefetching.
// Each SIMD level has a source file of its own, which defines VITRINE_SIMD, the target attribute of its functions,
// before it includes this, and gives its registers and instructions as a class `Level` of its anonymous namespace:
//
//   Floats, kLanes                          a register of float32 and how many it holds
//   load, broadcast, store, multiplyAdd, sum
//   denseOutputs(rows), mxfp4Outputs(rows)  outputs of one pass: their sums must fit the registers
//   kGroups, Tables, tables(), expandScales, addGroups<R>   MXFP4, kGroups groups at a time
//   bytes, Int4, Int8, Fp8                  see gemv_packed.h
//
// and dense weights as classes with Type, load (2 kLanes of a row, in the order of the prepared x) and column.

#include <cstring>

#include "kernels/context/cpu_context.h"
#include "kernels/formats/mxfp4_format.h"
#include "kernels/ops/linear/gemv_packed.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kGemvScaleChunk = 128;  ///< MXFP4 scales that are expanded at once
inline constexpr std::int64_t kExpandedStretch = 512; ///< weights of other packed formats that are expanded at once

/// Dense weights stored (out, in).
template <class Level, class Weights> struct DenseDots {
    using Type = typename Weights::Type;
    using Floats = typename Level::Floats;
    static constexpr std::int64_t kBlock = 2 * Level::kLanes;
    static constexpr int outputs(int rows) { return Level::denseOutputs(rows); }

    template <int R>
    VITRINE_SIMD __attribute__((always_inline)) static inline void add(const Type* weights, const float* const* x,
                                                                       std::int64_t k, Floats* sums) {
        Floats first;
        Floats second;
        Weights::load(weights, first, second);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            sums[r] = Level::multiplyAdd(first, Level::load(x[r] + k), sums[r]);
            sums[r] = Level::multiplyAdd(second, Level::load(x[r] + k + Level::kLanes), sums[r]);
        }
    }

    /// W neighbouring outputs by R rows of x. The bytes that the next call needs are prefetched at the same pace.
    template <int W, int R> VITRINE_SIMD static void block(const GemvCall& call, std::int64_t out, float* y) {
        const std::int64_t stride = call.matrix.stride;
        const std::int64_t in = call.matrix.in;
        const Type* const weights = static_cast<const Type*>(call.matrix.data) + out * stride;
        Floats sums[W][R] = {};
        std::int64_t k = 0;
        for (; k + kBlock <= in; k += kBlock) {
#pragma GCC unroll 8
            for (int w = 0; w < W; ++w) {
                const Type* const p = weights + w * stride + k;
                __builtin_prefetch(p + W * stride);
                add<R>(p, call.x, k, sums[w]);
            }
        }
        if (k < in) {
#pragma GCC unroll 8
            for (int w = 0; w < W; ++w) {
                Type tail[kBlock] = {};
                std::memcpy(tail, weights + w * stride + k, static_cast<std::size_t>(in - k) * sizeof(Type));
                add<R>(tail, call.x, k, sums[w]);
            }
        }
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                y[r * kGemvOutputs + w] = Level::sum(sums[w][r]);
            }
        }
    }
};

/// MXFP4 blocks. Scales are expanded a chunk at a time; one shuffle then spreads them over the lanes of their groups.
template <class Level> struct Mxfp4Dots {
    using Floats = typename Level::Floats;
    static constexpr int outputs(int rows) { return Level::mxfp4Outputs(rows); }

    template <int W, int R> VITRINE_SIMD static void block(const GemvCall& call, std::int64_t out, float* y) {
        constexpr std::int64_t kLine = 64;
        const typename Level::Tables tables = Level::tables();
        const std::int64_t groups = call.matrix.in / kMxfp4Group;
        const std::int64_t stride = call.matrix.in / 2;
        const std::uint8_t* const blocks = call.matrix.packing.row(out);
        const std::uint8_t* const scales = call.matrix.packing.scales + out * groups;
        alignas(64) float expanded[W][kGemvScaleChunk + Level::kLanes];
        Floats sums[W][R] = {};
        for (std::int64_t chunk = 0; chunk < groups; chunk += kGemvScaleChunk) {
            const std::int64_t count = groups - chunk < kGemvScaleChunk ? groups - chunk : kGemvScaleChunk;
#pragma GCC unroll 8
            for (int w = 0; w < W; ++w) {
                const std::uint8_t* const from = scales + w * groups + chunk;
                for (std::int64_t ahead = 0; ahead < count; ahead += kLine) {
                    __builtin_prefetch(from + W * groups + ahead);
                }
                Level::expandScales(from, count, expanded[w]);
            }
            for (std::int64_t g = 0; g < count; g += Level::kGroups) {
                const std::int64_t group = chunk + g;
#pragma GCC unroll 8
                for (int w = 0; w < W; ++w) {
                    const std::uint8_t* const p = blocks + w * stride + group * (kMxfp4Group / 2);
                    __builtin_prefetch(p + W * stride);
                    Level::template addGroups<R>(p, count - g, expanded[w] + g, tables, call.x, group * kMxfp4Group,
                                                 sums[w]);
                }
            }
        }
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                y[r * kGemvOutputs + w] = Level::sum(sums[w][r]);
            }
        }
    }
};

/// Any other packed format: its row of the table makes floats, a stretch at a time. The sums are those of tiles.
template <class Level> struct ExpandedDots {
    using Floats = typename Level::Floats;
    static constexpr int outputs(int rows) { return Level::denseOutputs(rows); }

    template <int W, int R> VITRINE_SIMD static void block(const GemvCall& call, std::int64_t out, float* y) {
        constexpr std::int64_t kBlock = 2 * Level::kLanes;
        const std::int64_t in = call.matrix.in;
        alignas(64) float weights[W][kExpandedStretch];
        Floats sums[W][R] = {};
        for (std::int64_t begin = 0; begin < in; begin += kExpandedStretch) {
            const std::int64_t count = in - begin < kExpandedStretch ? in - begin : kExpandedStretch;
            const std::int64_t whole = (count + kBlock - 1) / kBlock * kBlock;
            for (int w = 0; w < W; ++w) {
                loadWeights(call.matrix, out + w, begin, count, weights[w]);
                std::memset(weights[w] + count, 0, static_cast<std::size_t>(whole - count) * sizeof(float));
            }
            for (std::int64_t k = 0; k < whole; k += Level::kLanes) {
#pragma GCC unroll 8
                for (int w = 0; w < W; ++w) {
                    const Floats values = Level::load(weights[w] + k);
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r) {
                        sums[w][r] = Level::multiplyAdd(values, Level::load(call.x[r] + begin + k), sums[w][r]);
                    }
                }
            }
        }
#pragma GCC unroll 8
        for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                y[r * kGemvOutputs + w] = Level::sum(sums[w][r]);
            }
        }
    }
};

template <class Dots, int R> VITRINE_SIMD void dotOutputs(const GemvCall& call) {
    constexpr int kWide = Dots::outputs(R);
    std::int64_t o = 0;
    for (; o + kWide <= call.outCount; o += kWide) {
        Dots::template block<kWide, R>(call, call.outBegin + o, call.y + o);
    }
    for (; o < call.outCount; ++o) {
        Dots::template block<1, R>(call, call.outBegin + o, call.y + o);
    }
}

template <class Dots> void dotRows(const GemvCall& call) {
    switch (call.rows) {
    case 1:
        return dotOutputs<Dots, 1>(call);
    case 2:
        return dotOutputs<Dots, 2>(call);
    case 3:
        return dotOutputs<Dots, 3>(call);
    case 4:
        return dotOutputs<Dots, 4>(call);
    case 5:
        return dotOutputs<Dots, 5>(call);
    case 6:
        return dotOutputs<Dots, 6>(call);
    case 7:
        return dotOutputs<Dots, 7>(call);
    default:
        return dotOutputs<Dots, 8>(call);
    }
}

/// Transposed storage: one stored row at a time, all outputs of the call; the sums stay in the first-level cache.
template <class Level, class Weights> VITRINE_SIMD void sumColumns(const GemvCall& call) {
    alignas(64) float sums[kGemvRows][kGemvOutputs] = {};
    const auto* data = static_cast<const typename Weights::Type*>(call.matrix.data) + call.outBegin;
    const std::int64_t stride = call.matrix.stride;
    constexpr std::int64_t kAhead = 16;
    for (std::int64_t k = 0; k < call.matrix.in; ++k) {
        for (std::int64_t o = 0; o < call.outCount; o += Level::kLanes) {
            const typename Weights::Type* p = data + k * stride + o;
            if (k + kAhead < call.matrix.in) {
                __builtin_prefetch(p + kAhead * stride);
            }
            const typename Level::Floats values = Weights::column(p, call.outCount - o);
            for (std::int64_t r = 0; r < call.rows; ++r) {
                float* const sum = sums[r] + o;
                Level::store(sum, Level::multiplyAdd(values, Level::broadcast(call.x[r][k]), Level::load(sum)));
            }
        }
    }
    for (std::int64_t r = 0; r < call.rows; ++r) {
        std::memcpy(call.y + r * kGemvOutputs, sums[r], static_cast<std::size_t>(call.outCount) * sizeof(float));
    }
}

template <class Level, class Weights> void multiplyDense(const GemvCall& call) {
    if (call.matrix.transposed) {
        sumColumns<Level, Weights>(call);
    } else {
        dotRows<DenseDots<Level, Weights>>(call);
    }
}

/// Level names its dense weights Bf16, F16 and F32; other dtypes take the scalar path.
template <class Level> void multiplyRows(const GemvCall& call) {
    if (call.matrix.format == WeightFormat::Mxfp4) {
        return dotRows<Mxfp4Dots<Level>>(call);
    }
    if (readsPackedGroups(call.matrix)) {
        return withPackedFormat<Level>(call.matrix, [&]<class Format>() { dotRows<PackedDots<Level, Format>>(call); });
    }
    if (call.matrix.packed()) {
        return dotRows<ExpandedDots<Level>>(call);
    }
    switch (call.matrix.dtype) {
    case DType::BF16:
        return multiplyDense<Level, typename Level::Bf16>(call);
    case DType::F16:
        return multiplyDense<Level, typename Level::F16>(call);
    case DType::F32:
        return multiplyDense<Level, typename Level::F32>(call);
    default:
        return gemvScalar(call);
    }
}

} // namespace vitrine::kernels
