// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/mxfp4_format.h"

#include <algorithm>
#include <cmath>

namespace vitrine::kernels {

namespace {

constexpr std::uint8_t kNanScale = 255;

std::uint8_t groupScale(const float* group) {
    constexpr std::uint32_t kInfinity = 0x7F800000U;
    constexpr std::uint32_t kLargestExponentOfE2m1 = 2;
    std::uint32_t largest = 0; // magnitudes are in the order of their bits
    for (std::int64_t i = 0; i < kMxfp4Group; ++i) {
        largest = std::max(largest, std::bit_cast<std::uint32_t>(group[i]) & 0x7FFFFFFFU);
    }
    if (largest >= kInfinity) {
        return kNanScale;
    }
    const std::uint32_t exponent = std::max(largest >> 23, kLargestExponentOfE2m1) - kLargestExponentOfE2m1;
    return static_cast<std::uint8_t>(largest == 0 ? 127 : exponent);
}

std::string mxfp4Problem(const WeightView& weight) {
    const Shape& blocks = weight.data.shape;
    const Shape& scales = weight.scales.shape;
    const int rank = scales.rank();
    if (weight.transposed || !weight.zeros.empty() || !weight.scaleScales.empty() || !weight.order.empty()) {
        return "MXFP4 weights are never transposed and have no zeros, no scales of scales and no order";
    }
    if (weight.data.dtype != DType::U8 || weight.scales.dtype != DType::U8 || !weight.data.contiguous() ||
        !weight.scales.contiguous() || weight.scales.empty()) {
        return "blocks and scales are not U8 without gaps";
    }
    if ((rank != 2 && rank != 3) || blocks.rank() != rank + 1 || blocks[rank] != kMxfp4Group / 2) {
        return "blocks are not (..., out, groups, 16) with scales (..., out, groups)";
    }
    for (int dim = 0; dim < rank; ++dim) {
        if (scales[dim] != blocks[dim]) {
            return "the scales' shape is not that of the blocks";
        }
    }
    return {};
}

void expandMxfp4Row(const PackedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
    expandMxfp4(matrix.row(row), matrix.scales + matrix.firstScale(row), begin, count, out);
}

} // namespace

const PackedFormat& mxfp4Format() {
    static const PackedFormat kRow = [] {
        PackedFormat row{WeightFormat::Mxfp4, "mxfp4", "MXFP4", DType::F4, kMxfp4Group, kMxfp4Group};
        row.dataSuffix = "_blocks";
        row.scalesSuffix = "_scales";
        row.expertShare = 0.72; // measured on an H200: docs/notes/moe.md
        row.problem = mxfp4Problem;
        row.expand = expandMxfp4Row;
        return row;
    }();
    return kRow;
}

std::uint8_t nearestE2m1(float value) {
    const float magnitude = std::fabs(value);
    // Halfway points between neighbours. Of two codes the one with an even mantissa bit (0, 2, 4, 6) wins a tie.
    constexpr float kHalfway[7] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
    std::uint8_t code = 0;
    for (int i = 0; i < 7; ++i) {
        const bool upperIsEven = i % 2 == 1;
        code += static_cast<std::uint8_t>(upperIsEven ? magnitude >= kHalfway[i] : magnitude > kHalfway[i]);
    }
    return static_cast<std::uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

void packMxfp4(const float* values, std::int64_t count, std::uint8_t* blocks, std::uint8_t* scales) {
    for (std::int64_t group = 0; group < count / kMxfp4Group; ++group) {
        const float* in = values + group * kMxfp4Group;
        std::uint8_t* out = blocks + group * (kMxfp4Group / 2);
        const std::uint8_t scale = groupScale(in);
        scales[group] = scale;
        if (scale == kNanScale) {
            std::fill_n(out, kMxfp4Group / 2, std::uint8_t{0});
            continue;
        }
        const float factor = mxfp4Scale(static_cast<std::uint8_t>(254 - scale)); // 1 / 2^(scale - 127)
        for (std::int64_t b = 0; b < kMxfp4Group / 2; ++b) {
            const std::uint8_t low = nearestE2m1(in[2 * b] * factor);
            const std::uint8_t high = nearestE2m1(in[2 * b + 1] * factor);
            out[b] = static_cast<std::uint8_t>(low | high << 4);
        }
    }
}

float mxfp4Scale(std::uint8_t scale) {
    return std::bit_cast<float>(e8m0Bits(scale));
}

void expandMxfp4(const std::uint8_t* blocks, const std::uint8_t* scales, std::int64_t begin, std::int64_t count,
                 float* out) {
    for (std::int64_t group = begin / kMxfp4Group; group < (begin + count) / kMxfp4Group; ++group) {
        const float scale = mxfp4Scale(scales[group]);
        float table[16];
        for (int i = 0; i < 16; ++i) {
            table[i] = kE2M1[i] * scale;
        }
        const std::uint8_t* block = blocks + group * (kMxfp4Group / 2);
        float* values = out + (group * kMxfp4Group - begin);
        for (std::int64_t b = 0; b < kMxfp4Group / 2; ++b) {
            values[2 * b] = table[block[b] & 15U];
            values[2 * b + 1] = table[block[b] >> 4];
        }
    }
}

} // namespace vitrine::kernels
