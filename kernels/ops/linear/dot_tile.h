// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tiles of dot products, for the SIMD levels of gemv_rows.h. A few outputs' weights are expanded to float32 in the
// order of the prepared x; every row of the tile then meets them in the first-level cache. A level gives, beside what
// gemv_rows.h names:
//
//   add, kTileWide, kTileRows               outputs and rows whose sums one pass keeps in registers
//   expandGroups                            kGroups groups of MXFP4 as float32, scaled
//
// A dot product has kLanes partial sums. Dense weights add to them vector by vector; MXFP4 sums the vectors of kGroups
// groups first, as addGroups does: with the scale, a power of two, in the weights or after the sum, the result is one.

#include <algorithm>
#include <cstring>

#include "kernels/context/cpu_context.h"
#include "kernels/ops/linear/gemv_rows.h"

namespace vitrine::kernels {

template <class Level, class Weights> struct DenseStretch {
    using Type = typename Weights::Type;
    static constexpr std::int64_t kBlock = 2 * Level::kLanes;
    static constexpr std::int64_t kUnit = 0; ///< one sum over everything

    VITRINE_SIMD static void expand(const MatrixRef& matrix, std::int64_t out, std::int64_t begin, std::int64_t count,
                                    float* to) {
        const Type* const from = static_cast<const Type*>(matrix.data) + out * matrix.stride + begin;
        std::int64_t k = 0;
        for (; k + kBlock <= count; k += kBlock) {
            store(from + k, to + k);
        }
        if (k < count) {
            Type tail[kBlock] = {};
            std::memcpy(tail, from + k, static_cast<std::size_t>(count - k) * sizeof(Type));
            store(tail, to + k);
        }
    }

private:
    VITRINE_SIMD __attribute__((always_inline)) static inline void store(const Type* from, float* to) {
        typename Level::Floats first;
        typename Level::Floats second;
        Weights::load(from, first, second);
        Level::store(to, first);
        Level::store(to + Level::kLanes, second);
    }
};

template <class Level> struct Mxfp4Stretch {
    static constexpr std::int64_t kBlock = Level::kGroups * kMxfp4Group;
    static constexpr std::int64_t kUnit = kBlock;

    VITRINE_SIMD static void expand(const MatrixRef& matrix, std::int64_t out, std::int64_t begin, std::int64_t count,
                                    float* to) {
        constexpr std::int64_t kGroups = kDotDepth / kMxfp4Group;
        alignas(64) float scales[kGroups + Level::kLanes];
        const typename Level::Tables tables = Level::tables();
        const std::int64_t groups = count / kMxfp4Group;
        Level::expandScales(matrix.packing.scales + (out * matrix.in + begin) / kMxfp4Group, groups, scales);
        const std::uint8_t* from = matrix.packing.row(out) + begin / 2;
        for (std::int64_t g = 0; g < groups; g += Level::kGroups) {
            Level::expandGroups(from + g * (kMxfp4Group / 2), groups - g, scales + g, tables, to + g * kMxfp4Group);
        }
    }
};

/// Any other packed format: its row of the table makes floats.
template <class Level> struct ExpandedStretch {
    static constexpr std::int64_t kBlock = 2 * Level::kLanes;
    static constexpr std::int64_t kUnit = 0;

    static void expand(const MatrixRef& matrix, std::int64_t out, std::int64_t begin, std::int64_t count, float* to) {
        loadWeights(matrix, out, begin, count, to);
        const std::int64_t whole = (count + kBlock - 1) / kBlock * kBlock;
        std::fill(to + count, to + whole, 0.0F);
    }
};

template <class Level, class Stretch> class DotTile {
public:
    VITRINE_SIMD static void add(const DotTileCall& call) {
        constexpr int kWide = Level::kTileWide;
        alignas(64) float weights[kWide * kDotDepth];
        const std::int64_t depth = (call.count + Stretch::kBlock - 1) / Stretch::kBlock * Stretch::kBlock;
        std::int64_t o = 0;
        for (; o + kWide <= call.outCount; o += kWide) {
            for (int w = 0; w < kWide; ++w) {
                Stretch::expand(call.matrix, call.outBegin + o + w, call.begin, call.count, weights + w * kDotDepth);
            }
            rows<kWide>(call, weights, depth, o);
        }
        for (; o < call.outCount; ++o) {
            Stretch::expand(call.matrix, call.outBegin + o, call.begin, call.count, weights);
            rows<1>(call, weights, depth, o);
        }
    }

private:
    using Floats = typename Level::Floats;
    static constexpr std::int64_t kLanes = Level::kLanes;

    template <int W>
    VITRINE_SIMD __attribute__((always_inline)) static inline void rows(const DotTileCall& call, const float* weights,
                                                                        std::int64_t depth, std::int64_t o) {
        constexpr int kRows = Level::kTileRows;
        float* const lanes = call.lanes + o * kDotRows * kDotLanes;
        std::int64_t row = 0;
        for (; row + kRows <= call.rows; row += kRows) {
            block<W, kRows>(weights, call.x + row * kDotDepth, depth, lanes + row * kDotLanes);
        }
        for (; row < call.rows; ++row) {
            block<W, 1>(weights, call.x + row * kDotDepth, depth, lanes + row * kDotLanes);
        }
    }

    /// W outputs by R rows.
    template <int W, int R>
    VITRINE_SIMD static void block(const float* weights, const float* x, std::int64_t depth, float* lanes) {
        const std::int64_t unit = Stretch::kUnit == 0 ? depth : Stretch::kUnit;
        for (std::int64_t begin = 0; begin < depth; begin += unit) {
            Floats sums[W][R] = {};
            if constexpr (Stretch::kUnit == 0) {
#pragma GCC unroll 8
                for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
                    for (int r = 0; r < R; ++r) {
                        sums[w][r] = Level::load(at(lanes, w, r));
                    }
                }
            }
            for (std::int64_t k = begin; k < begin + unit; k += kLanes) {
                Floats parts[W];
#pragma GCC unroll 8
                for (int w = 0; w < W; ++w) {
                    parts[w] = Level::load(weights + w * kDotDepth + k);
                }
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) {
                    const Floats values = Level::load(x + r * kDotDepth + k);
#pragma GCC unroll 8
                    for (int w = 0; w < W; ++w) {
                        sums[w][r] = Level::multiplyAdd(parts[w], values, sums[w][r]);
                    }
                }
            }
#pragma GCC unroll 8
            for (int w = 0; w < W; ++w) {
#pragma GCC unroll 8
                for (int r = 0; r < R; ++r) {
                    float* const lane = at(lanes, w, r);
                    Level::store(lane, Stretch::kUnit == 0 ? sums[w][r] : Level::add(Level::load(lane), sums[w][r]));
                }
            }
        }
    }
    static float* at(float* lanes, int w, int r) { return lanes + (w * kDotRows + r) * kDotLanes; }
};

template <class Level> void addDots(const DotTileCall& call) {
    if (call.matrix.format == WeightFormat::Mxfp4) {
        return DotTile<Level, Mxfp4Stretch<Level>>::add(call);
    }
    if (readsPackedGroups(call.matrix)) {
        return withPackedFormat<Level>(
            call.matrix, [&]<class Format>() { DotTile<Level, PackedStretch<Level, Format>>::add(call); });
    }
    if (call.matrix.packed()) {
        return DotTile<Level, ExpandedStretch<Level>>::add(call);
    }
    switch (call.matrix.dtype) {
    case DType::BF16:
        return DotTile<Level, DenseStretch<Level, typename Level::Bf16>>::add(call);
    case DType::F16:
        return DotTile<Level, DenseStretch<Level, typename Level::F16>>::add(call);
    case DType::F32:
        return DotTile<Level, DenseStretch<Level, typename Level::F32>>::add(call);
    default:
        return addDotsScalar(call);
    }
}

template <class Level> VITRINE_SIMD void sumDots(const DotTileCall& call, float* sums) {
    const DType dtype = call.matrix.dtype;
    if (!call.matrix.packed() && dtype != DType::BF16 && dtype != DType::F16 && dtype != DType::F32) {
        return sumDotsScalar(call, sums);
    }
    for (std::int64_t o = 0; o < call.outCount; ++o) {
        for (std::int64_t r = 0; r < call.rows; ++r) {
            sums[r * kTileOutputs + o] = Level::sum(Level::load(call.lanes + (o * kDotRows + r) * kDotLanes));
        }
    }
}

} // namespace vitrine::kernels
