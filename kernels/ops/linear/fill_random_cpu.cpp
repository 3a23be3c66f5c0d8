// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/philox.h"
#include "kernels/context/cpu_context.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/linear/weights.h"

// Philox counters are numbered along the tensor, so a value depends on its place only. A block of 16 random bytes makes
// 16 bytes, 8 half-width or 4 wider floats. Normal values are quantiles of equally likely cells (65536 of them), which
// costs a table lookup; wide floats interpolate inside the cell.

namespace vitrine::kernels {

namespace {

constexpr int kBatch = 64; ///< Philox blocks made together
constexpr int kWords = 4 * kBatch;
constexpr std::uint32_t kCells = 65536;

/// Inverse of the standard normal distribution: a rational start, then Newton steps
/// (Abramowitz and Stegun 26.2.23; three steps reach double rounding).
double normalQuantile(double p) {
    const double tail = std::min(p, 1 - p);
    const double t = std::sqrt(-2 * std::log(tail));
    double z =
        t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
    for (int step = 0; step < 3; ++step) {
        const double error = 0.5 * std::erfc(z / std::sqrt(2.0)) - tail;
        z += error * std::sqrt(2 * 3.14159265358979323846) * std::exp(z * z / 2);
    }
    return p < 0.5 ? -z : z;
}

const std::vector<float>& quantiles() {
    static const std::vector<float> kTable = [] {
        std::vector<float> values(kCells);
        for (std::uint32_t i = 0; i < kCells; ++i) {
            values[i] = static_cast<float>(normalQuantile((i + 0.5) / kCells));
        }
        return values;
    }();
    return kTable;
}

/// Blocks first .. first + kBatch - 1 as 4 words each; the loop over lanes vectorises.
__attribute__((always_inline)) inline void philoxBatch(base::PhiloxKey key, std::uint64_t first, std::uint32_t* words) {
    std::uint32_t c0[kBatch];
    std::uint32_t c1[kBatch];
    std::uint32_t c2[kBatch];
    std::uint32_t c3[kBatch];
    for (int lane = 0; lane < kBatch; ++lane) {
        const std::uint64_t position = first + static_cast<std::uint64_t>(lane);
        c0[lane] = static_cast<std::uint32_t>(position);
        c1[lane] = static_cast<std::uint32_t>(position >> 32);
        c2[lane] = 0;
        c3[lane] = 0;
    }
    std::uint32_t k0 = key.seed;
    std::uint32_t k1 = key.stream;
    for (int round = 0; round < 10; ++round) {
        for (int lane = 0; lane < kBatch; ++lane) {
            const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * c0[lane];
            const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * c2[lane];
            const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1[lane] ^ k0;
            const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3[lane] ^ k1;
            c1[lane] = static_cast<std::uint32_t>(p1);
            c3[lane] = static_cast<std::uint32_t>(p0);
            c0[lane] = n0;
            c2[lane] = n2;
        }
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    for (int lane = 0; lane < kBatch; ++lane) {
        words[4 * lane] = c0[lane];
        words[4 * lane + 1] = c1[lane];
        words[4 * lane + 2] = c2[lane];
        words[4 * lane + 3] = c3[lane];
    }
}

void philoxScalar(base::PhiloxKey key, std::uint64_t first, std::uint32_t* words) {
    philoxBatch(key, first, words);
}
__attribute__((target("avx2"))) void philoxAvx2(base::PhiloxKey key, std::uint64_t first, std::uint32_t* words) {
    philoxBatch(key, first, words);
}
__attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))) void
philoxAvx512(base::PhiloxKey key, std::uint64_t first, std::uint32_t* words) {
    philoxBatch(key, first, words);
}

using PhiloxKernel = void (*)(base::PhiloxKey, std::uint64_t, std::uint32_t*);

PhiloxKernel philoxKernel(SimdLevel simd) {
    switch (simd) {
    case SimdLevel::Avx512:
        return philoxAvx512;
    case SimdLevel::Avx2:
        return philoxAvx2;
    case SimdLevel::Scalar:
        break;
    }
    return philoxScalar;
}

void narrowNormals(const FillRandom& op, const std::uint32_t* words, std::int64_t count, float* out) {
    const float* table = quantiles().data();
    std::uint16_t cells[2 * kWords];
    std::memcpy(cells, words, sizeof cells);
    for (std::int64_t i = 0; i < count; ++i) {
        out[i] = op.center + op.deviation * table[cells[i]];
    }
}

void wideNormals(const FillRandom& op, const std::uint32_t* words, std::int64_t count, float* out) {
    const float* table = quantiles().data();
    for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t cell = words[i] >> 16;
        const float inside = static_cast<float>(words[i] & 0xFFFFU) * 0x1.0p-16F - 0.5F;
        const float below = table[cell == 0 ? 0 : cell - 1];
        const float above = table[cell == kCells - 1 ? cell : cell + 1];
        out[i] = op.center + op.deviation * (table[cell] + inside * 0.5F * (above - below));
    }
}

/// Elements that one block of 16 random bytes makes.
std::int64_t elementsPerBlock(DType dtype) {
    switch (dtype) {
    case DType::U8:
        return 16;
    case DType::BF16:
    case DType::F16:
        return 8;
    default:
        return 4;
    }
}

/// Elements [begin, begin + count) of the stream to places from `to` on. They lie within kBatch blocks.
void fillStretch(const FillRandom& op, PhiloxKernel philox, std::int64_t begin, std::int64_t count, std::int64_t to) {
    const std::int64_t perBlock = elementsPerBlock(op.out.dtype);
    const std::int64_t skipped = begin % perBlock;
    std::uint32_t words[kWords];
    philox(base::philoxKey(op.seed, op.stream), static_cast<std::uint64_t>(begin / perBlock), words);
    if (op.out.dtype == DType::U8) {
        const auto cleared = static_cast<std::uint8_t>(op.center);
        std::uint8_t* out = op.out.as<std::uint8_t>() + to;
        std::memcpy(out, reinterpret_cast<const std::uint8_t*>(words) + skipped, static_cast<std::size_t>(count));
        for (std::int64_t i = 0; cleared != 0 && i < count; ++i) {
            out[i] = static_cast<std::uint8_t>(out[i] & ~cleared);
        }
        return;
    }
    float values[2 * kWords];
    if (perBlock == 8) {
        narrowNormals(op, words, skipped + count, values);
    } else {
        wideNormals(op, words, skipped + count, values);
    }
    storeFloats(op.out.dtype, values + skipped, count, op.out.data, to);
}

/// Each run of a part by itself, in stretches that one batch of blocks makes wherever they begin.
void fillPart(CpuContext& context, const FillRandom& op, PhiloxKernel philox) {
    const std::int64_t perBlock = elementsPerBlock(op.out.dtype);
    const std::int64_t most = (kBatch - 1) * perBlock;
    const std::int64_t pieces = (op.part.run + most - 1) / most;
    const std::int64_t runs = op.out.shape.count() / op.part.run;
    forRows(context, runs * pieces, most * 4, [&](std::int64_t index) {
        const std::int64_t run = index / pieces, skipped = index % pieces * most;
        fillStretch(op, philox, op.part.first + run * op.part.stride + skipped, std::min(most, op.part.run - skipped),
                    run * op.part.run + skipped);
    });
}

} // namespace

void execute(CpuContext& context, const FillRandom& op) {
    const std::int64_t elements = op.out.shape.count();
    if (op.out.dtype == DType::U8 && op.deviation == 0) {
        constexpr std::int64_t kPiece = 1 << 16;
        forRows(context, (elements + kPiece - 1) / kPiece, kPiece, [&](std::int64_t piece) {
            const std::int64_t begin = piece * kPiece;
            std::memset(op.out.as<std::uint8_t>() + begin, static_cast<int>(op.center),
                        static_cast<std::size_t>(std::min(kPiece, elements - begin)));
        });
        return;
    }
    const std::int64_t perBatch = kBatch * elementsPerBlock(op.out.dtype);
    const PhiloxKernel philox = philoxKernel(context.simd());
    if (op.part.run > 0) {
        fillPart(context, op, philox);
        return;
    }
    forRows(context, (elements + perBatch - 1) / perBatch, perBatch * 4, [&](std::int64_t batch) {
        const std::int64_t begin = batch * perBatch;
        fillStretch(op, philox, begin, std::min(perBatch, elements - begin), begin);
    });
}

} // namespace vitrine::kernels
