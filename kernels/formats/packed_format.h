// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a packed format is: a row of the table in kernels/formats/weight_formats.cpp. The CPU multiplies, expands and
// checks weights of every format through its row, and knows no more of it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

struct PackedFormat;

/// One matrix (out, in) of a packed weight in host memory. Owns nothing.
struct PackedMatrix {
    const PackedFormat* format = nullptr;
    const std::uint8_t* data = nullptr;
    const std::uint8_t* scales = nullptr; ///< of scaleType; null where the format has none
    const std::uint8_t* zeros = nullptr;  ///< or null
    const float* scaleScales = nullptr;   ///< or null
    const std::int32_t* order = nullptr;  ///< the group of each input, or null: i / group
    DType scaleType = DType::None;
    std::int64_t rowBytes = 0; ///< of data
    std::int64_t groups = 0;   ///< scales of a row
    std::int64_t group = 0;    ///< inputs that share a scale
    std::int64_t rowGroup = 1; ///< rows that share their scales
    float scaleOffset = 0;

    const std::uint8_t* row(std::int64_t index) const { return data + index * rowBytes; }
    /// Where the scales, and the zeros, of a row begin.
    std::int64_t firstScale(std::int64_t index) const { return index / rowGroup * groups; }
};

/// What is the same for all weights of a format.
struct PackedFormat {
    WeightFormat format = WeightFormat::Dense;
    std::string_view name;       ///< "mxfp4"
    std::string_view title;      ///< for people: "MXFP4"
    DType element = DType::None; ///< of one packed element
    std::int64_t group = 0;      ///< inputs that share a scale; 0: each weight says it
    std::int64_t unit = 1;       ///< inputs are expanded so many at a time: pieces begin and end at multiples
    /// What the name of a tensor in memory ends with, where names tell the format: NAME_blocks holds the elements.
    std::string_view dataSuffix;
    std::string_view scalesSuffix; ///< likewise NAME_scales
    /// The share of a GPU's rate of memory that products of experts with such weights reach.
    double expertShare = 1;
    /// What is wrong with the types and shapes of a weight, for a programmer; empty: nothing.
    std::string (*problem)(const WeightView& weight) = nullptr;
    /// Elements [begin, begin + count) of a row as float32. Both are multiples of `unit`.
    void (*expand)(const PackedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count,
                   float* out) = nullptr;
};

/// Matrix number `expert` of a packed weight. Its fields must lie one after the other for all experts.
PackedMatrix packedMatrixOf(const WeightView& weight, std::int64_t expert);

/// Rules that formats share, for PackedFormat::problem. Data are rows of `bits` for each element, in memory that has no
/// gaps; scales are of a float type, (..., out / rowGroup, groups), and zeros are none or U8 of their shape.
std::string groupedProblem(const WeightView& weight, int bits);

} // namespace vitrine::kernels
