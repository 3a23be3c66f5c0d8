// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Products with INT4, INT8 and FP8 weights straight from their bytes, for the SIMD levels of gemv_rows.h. Registers get
// the floats that PackedFormat::expand gives, (code - zero) * scale, a block of inputs at a time. Few rows multiply by
// them at once. Tiles store them first. Both add up as dense weights do.
//
// Activations stay float32: VNNI and BF16 dot products would round them. A level gives, beside what gemv_rows.h names:
//
//   bytes              up to kLanes bytes as float32, and zeros after them
//   Int4, Int8, Fp8    kBits of a weight, kVectors, kZero (the zero without zeros), and load: the weights of a block as
//                      kVectors registers, in the order of the prepared x. It is given how many groups are left of the
//                      row, and a scale and a zero for each

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/formats/integer_format.h"
#include "kernels/ops/linear/gemv.h"

#ifndef VITRINE_SIMD
#define VITRINE_SIMD
#endif

namespace vitrine::kernels {

/// Inputs that share a scale and a zero, as these kernels see them: a larger group is several of these.
inline constexpr std::int64_t kPackedGroup = 32;
/// Groups whose scales are expanded at once.
inline constexpr std::int64_t kPackedChunk = 128;

/// Whether these kernels take the matrix. Other matrices are expanded by the format's row of the table: those with an
/// order of inputs, and those whose rows or groups are not whole kPackedGroup inputs.
inline bool readsPackedGroups(const MatrixRef& matrix) {
    const WeightFormat format = matrix.format;
    const bool known = format == WeightFormat::Int4 || format == WeightFormat::Int8 || format == WeightFormat::Fp8;
    const PackedMatrix& packing = matrix.packing;
    return known && packing.order == nullptr && matrix.in % kPackedGroup == 0 &&
           (packing.group % kPackedGroup == 0 || packing.group >= matrix.in);
}

/// The scales and zeros of a chunk of a row, one for each kPackedGroup inputs. What a block reads past the last group
/// is finite: the weights that it makes there meet zeros of x.
template <class Level, class Format> class PackedGroups {
public:
    /// Groups [begin, begin + count) of a row, at most kPackedChunk.
    VITRINE_SIMD void load(const MatrixRef& matrix, std::int64_t row, std::int64_t begin, std::int64_t count) {
        const PackedMatrix& packing = matrix.packing;
        const std::int64_t repeat = std::min(packing.group, matrix.in) / kPackedGroup;
        const std::int64_t skipped = begin / repeat; // of the groups that the matrix has
        const std::int64_t first = packing.firstScale(row) + skipped;
        const std::int64_t stored = (begin + count - 1) / repeat + 1 - skipped;
        float values[kSize];
        float* const scales = repeat == 1 ? scales_ : values;
        switch (packing.scaleType) {
        case DType::BF16:
            convert<typename Level::Bf16>(packing.scales, first, stored, scales);
            break;
        case DType::F16:
            convert<typename Level::F16>(packing.scales, first, stored, scales);
            break;
        default:
            convert<typename Level::F32>(packing.scales, first, stored, scales);
            break;
        }
        spread(values, begin - skipped * repeat, repeat, count, scales_);
        if (packing.zeros != nullptr) {
            float* const zeros = repeat == 1 ? zeros_ : values;
            for (std::int64_t g = 0; g < stored; g += Level::kLanes) {
                Level::store(zeros + g, Level::bytes(packing.zeros + first + g, stored - g));
            }
            spread(values, begin - skipped * repeat, repeat, count, zeros_);
            given_ = zeros_;
        }
    }

    const float* scales() const { return scales_; }
    const float* zeros() const { return given_; }

private:
    static constexpr std::int64_t kSize = kPackedChunk + Level::kLanes;
    /// The zeros of a matrix without zeros.
    static constexpr std::array<float, kSize> kMiddle = [] {
        std::array<float, kSize> zeros{};
        zeros.fill(Format::kZero);
        return zeros;
    }();

    template <class Weights>
    VITRINE_SIMD static void convert(const std::uint8_t* scales, std::int64_t first, std::int64_t count, float* out) {
        const auto* const from = reinterpret_cast<const typename Weights::Type*>(scales) + first;
        for (std::int64_t g = 0; g < count; g += Level::kLanes) {
            Level::store(out + g, Weights::column(from + g, count - g));
        }
    }

    /// Each value `repeat` times, without the first `skip` of them; a vector zero ends them.
    VITRINE_SIMD static void spread(const float* values, std::int64_t skip, std::int64_t repeat, std::int64_t count,
                                    float* out) {
        if (repeat > 1) {
            std::int64_t stop = repeat - skip;
            for (std::int64_t g = 0; g < count; stop += repeat) {
                const typename Level::Floats value = Level::broadcast(*values++);
                const std::int64_t end = std::min(stop, count);
                for (std::int64_t at = g; at < end; at += Level::kLanes) {
                    Level::store(out + at, value);
                }
                g = end;
            }
        }
        Level::store(out + count, Level::broadcast(0));
    }

    alignas(64) float scales_[kSize];
    alignas(64) float zeros_[kSize];
    const float* given_ = kMiddle.data();
};

/// How the blocks of a format lie.
template <class Level, class Format> struct PackedBlocks {
    static constexpr std::int64_t kInputs = Format::kVectors * Level::kLanes;
    static constexpr std::int64_t kGroups = kInputs / kPackedGroup;
    static constexpr std::int64_t kGroupBytes = kPackedGroup * Format::kBits / 8;
};

/// Few rows of x.
template <class Level, class Format> struct PackedDots {
    using Floats = typename Level::Floats;
    using Blocks = PackedBlocks<Level, Format>;
    static constexpr int outputs(int rows) { return Level::denseOutputs(rows); }

    template <int W, int R> VITRINE_SIMD static void block(const GemvCall& call, std::int64_t out, float* y) {
        const std::int64_t groups = call.matrix.in / kPackedGroup;
        const std::int64_t stride = call.matrix.packing.rowBytes;
        const std::uint8_t* const rows = call.matrix.packing.row(out);
        PackedGroups<Level, Format> chunks[W];
        Floats sums[W][R] = {};
        for (std::int64_t chunk = 0; chunk < groups; chunk += kPackedChunk) {
            const std::int64_t count = std::min(kPackedChunk, groups - chunk);
            for (int w = 0; w < W; ++w) {
                chunks[w].load(call.matrix, out + w, chunk, count);
            }
            for (std::int64_t g = 0; g < count; g += Blocks::kGroups) {
                const std::int64_t k = (chunk + g) * kPackedGroup;
#pragma GCC unroll 8
                for (int w = 0; w < W; ++w) {
                    const std::uint8_t* const p = rows + w * stride + (chunk + g) * Blocks::kGroupBytes;
                    __builtin_prefetch(p + W * stride);
                    Floats values[Format::kVectors];
                    Format::load(p, count - g, chunks[w].scales() + g, chunks[w].zeros() + g, values);
                    add<R>(values, call.x, k, sums[w]);
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

private:
    template <int R>
    VITRINE_SIMD __attribute__((always_inline)) static inline void add(const Floats* values, const float* const* x,
                                                                       std::int64_t k, Floats* sums) {
#pragma GCC unroll 8
        for (int v = 0; v < Format::kVectors; ++v) {
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                sums[r] = Level::multiplyAdd(values[v], Level::load(x[r] + k + v * Level::kLanes), sums[r]);
            }
        }
    }
};

/// A stretch of a row as float32 for tiles, in the order of the prepared x, and zeros up to a whole block.
template <class Level, class Format> struct PackedStretch {
    using Blocks = PackedBlocks<Level, Format>;
    static constexpr std::int64_t kBlock = Blocks::kInputs;
    static constexpr std::int64_t kUnit = 0;

    VITRINE_SIMD static void expand(const MatrixRef& matrix, std::int64_t out, std::int64_t begin, std::int64_t count,
                                    float* to) {
        const std::int64_t first = begin / kPackedGroup;
        const std::int64_t groups = count / kPackedGroup;
        PackedGroups<Level, Format> chunk;
        chunk.load(matrix, out, first, groups);
        const std::uint8_t* const from = matrix.packing.row(out) + first * Blocks::kGroupBytes;
        for (std::int64_t g = 0; g < groups; g += Blocks::kGroups) {
            typename Level::Floats values[Format::kVectors];
            Format::load(from + g * Blocks::kGroupBytes, groups - g, chunk.scales() + g, chunk.zeros() + g, values);
#pragma GCC unroll 8
            for (int v = 0; v < Format::kVectors; ++v) {
                Level::store(to + g * kPackedGroup + v * Level::kLanes, values[v]);
            }
        }
    }
};

/// Calls body.template operator()<Format>() with the level's class of the matrix's format, which the kernels take.
template <class Level, class Body> void withPackedFormat(const MatrixRef& matrix, const Body& body) {
    switch (matrix.format) {
    case WeightFormat::Int4:
        return body.template operator()<typename Level::Int4>();
    case WeightFormat::Int8:
        return body.template operator()<typename Level::Int8>();
    default:
        return body.template operator()<typename Level::Fp8>();
    }
}

} // namespace vitrine::kernels
