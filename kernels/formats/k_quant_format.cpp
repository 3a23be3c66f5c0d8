// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/k_quant_format.h"

#include <fmt/format.h>

#include "kernels/core/floats.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kStretch = 32; ///< elements that are expanded at once

std::string kQuantProblem(const WeightView& weight, std::int64_t elements, std::int64_t blockBytes) {
    if (weight.transposed || !weight.scales.empty() || !weight.zeros.empty() || !weight.scaleScales.empty() ||
        !weight.order.empty()) {
        return "blocks are never transposed and have neither scales, zeros nor an order beside them";
    }
    const std::int64_t blocks = weight.experts() * weight.outFeatures() * (weight.inFeatures() / elements);
    if (weight.inFeatures() % elements != 0) {
        return fmt::format("rows are not whole blocks of {}", elements);
    }
    if (weight.data.dtype != DType::U8 || !weight.data.contiguous() ||
        static_cast<std::int64_t>(weight.data.bytes()) != blocks * blockBytes) {
        return "the data are not U8 blocks without gaps";
    }
    return {};
}

float halfAt(const std::uint8_t* bytes) {
    return f16ToFloat(static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8));
}

/// Six bits: for the first four stretches of a block in a byte of their own, for the others four bits in byte 8 + i and
/// the upper two in what the first ones leave free. `minimum` is 1 for the minima, which lie four bytes on and in the
/// upper nibbles.
int q4kScale(const std::uint8_t* packed, std::int64_t stretch, int minimum) {
    const std::int64_t at = stretch % 4 + 4 * minimum;
    if (stretch < 4) {
        return packed[at] & 63;
    }
    return (packed[8 + stretch % 4] >> (4 * minimum) & 15) | (packed[at] >> 2 & 48);
}

/// A block of 32 elements: `fifth` are the bits above the nibbles, or 0.
void expandWithOffset(const std::uint8_t* block, const std::uint8_t* codes, std::uint32_t fifth, float* out) {
    const float scale = halfAt(block);
    const float offset = halfAt(block + 2);
    for (std::int64_t i = 0; i < kStretch; ++i) {
        const int low = codes[i % 16] >> (i < 16 ? 0 : 4) & 15;
        const int code = low | static_cast<int>(fifth >> i & 1) << 4;
        out[i] = scale * static_cast<float>(code) + offset;
    }
}

void expandQ41(const std::uint8_t* block, std::int64_t, float* out) {
    expandWithOffset(block, block + 4, 0, out);
}

void expandQ51(const std::uint8_t* block, std::int64_t, float* out) {
    std::uint32_t fifth = 0;
    for (int i = 3; i >= 0; --i) {
        fifth = fifth << 8 | block[4 + i];
    }
    expandWithOffset(block, block + 8, fifth, out);
}

/// Stretch number `stretch` of 32 elements of a block.
void expandQ4K(const std::uint8_t* block, std::int64_t stretch, float* out) {
    const float scale = halfAt(block) * static_cast<float>(q4kScale(block + 4, stretch, 0));
    const float minimum = halfAt(block + 2) * static_cast<float>(q4kScale(block + 4, stretch, 1));
    const std::uint8_t* const codes = block + 16 + stretch / 2 * kStretch;
    const int shift = stretch % 2 == 0 ? 0 : 4;
    for (std::int64_t i = 0; i < kStretch; ++i) {
        out[i] = scale * static_cast<float>(codes[i] >> shift & 15) - minimum;
    }
}

void expandQ5K(const std::uint8_t* block, std::int64_t stretch, float* out) {
    const float scale = halfAt(block) * static_cast<float>(q4kScale(block + 4, stretch, 0));
    const float minimum = halfAt(block + 2) * static_cast<float>(q4kScale(block + 4, stretch, 1));
    const std::uint8_t* const fifth = block + 16;
    const std::uint8_t* const codes = block + 48 + stretch / 2 * kStretch;
    const int shift = stretch % 2 == 0 ? 0 : 4;
    for (std::int64_t i = 0; i < kStretch; ++i) {
        const int code = (codes[i] >> shift & 15) | (fifth[i] >> stretch & 1) << 4;
        out[i] = scale * static_cast<float>(code) - minimum;
    }
}

void expandQ6K(const std::uint8_t* block, std::int64_t stretch, float* out) {
    const std::uint8_t* const low = block + stretch / 4 * 64 + stretch % 2 * 32;
    const std::uint8_t* const high = block + 128 + stretch / 4 * 32;
    const std::uint8_t* const scales = block + 192 + stretch * 2;
    const float d = halfAt(block + 208);
    const int lowShift = stretch % 4 < 2 ? 0 : 4;
    const auto highShift = static_cast<int>(stretch % 4 * 2);
    for (std::int64_t i = 0; i < kStretch; ++i) {
        const int code = (low[i] >> lowShift & 15) | (high[i] >> highShift & 3) << 4;
        const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[i / 16]));
        out[i] = scale * static_cast<float>(code - 32);
    }
}

template <std::int64_t Elements, std::int64_t Bytes, auto Expand>
void expandBlocks(const PackedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
    constexpr std::int64_t kStretches = Elements / kStretch;
    for (std::int64_t stretch = begin / kStretch; stretch < (begin + count) / kStretch; ++stretch) {
        Expand(matrix.row(row) + stretch / kStretches * Bytes, stretch % kStretches, out);
        out += kStretch;
    }
}

template <std::int64_t Elements, std::int64_t Bytes, auto Expand>
PackedFormat formatOf(WeightFormat format, std::string_view name, std::string_view title) {
    PackedFormat row{format, name, title};
    row.unit = kStretch;
    row.problem = [](const WeightView& weight) { return kQuantProblem(weight, Elements, Bytes); };
    row.expand = expandBlocks<Elements, Bytes, Expand>;
    return row;
}

} // namespace

const PackedFormat& q41Format() {
    static const PackedFormat kRow = formatOf<kQ1Elements, kQ41Bytes, expandQ41>(WeightFormat::Q41, "q4_1", "Q4_1");
    return kRow;
}

const PackedFormat& q51Format() {
    static const PackedFormat kRow = formatOf<kQ1Elements, kQ51Bytes, expandQ51>(WeightFormat::Q51, "q5_1", "Q5_1");
    return kRow;
}

const PackedFormat& q4kFormat() {
    static const PackedFormat kRow = formatOf<kKQuantElements, kQ4KBytes, expandQ4K>(WeightFormat::Q4K, "q4_k", "Q4_K");
    return kRow;
}

const PackedFormat& q5kFormat() {
    static const PackedFormat kRow = formatOf<kKQuantElements, kQ5KBytes, expandQ5K>(WeightFormat::Q5K, "q5_k", "Q5_K");
    return kRow;
}

const PackedFormat& q6kFormat() {
    static const PackedFormat kRow = formatOf<kKQuantElements, kQ6KBytes, expandQ6K>(WeightFormat::Q6K, "q6_k", "Q6_K");
    return kRow;
}

} // namespace vitrine::kernels
