// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/integer_format.h"

#include <algorithm>

#include "kernels/core/floats.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kPart = 64; ///< elements that are expanded at once

template <int Bits> int codeAt(const std::uint8_t* row, std::int64_t i) {
    if constexpr (Bits == 8) {
        return row[i];
    } else {
        return i % 2 == 0 ? row[i / 2] & 15 : row[i / 2] >> 4;
    }
}

template <int Bits>
void scaleRun(const std::uint8_t* row, std::int64_t begin, std::int64_t count, int zero, float scale, float* out) {
    for (std::int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<float>(codeAt<Bits>(row, begin + i) - zero) * scale;
    }
}

/// Every input has a group of its own.
template <int Bits>
void expandOrdered(const PackedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
    const std::int64_t first = matrix.firstScale(row);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t at = first + matrix.order[begin + i];
        float scale = 0;
        loadFloats(matrix.scaleType, matrix.scales, at, 1, &scale);
        const int zero = matrix.zeros == nullptr ? middleCode(Bits) : matrix.zeros[at];
        scaleRun<Bits>(matrix.row(row), begin + i, 1, zero, scale, out + i);
    }
}

template <int Bits>
void expandInteger(const PackedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
    if (matrix.order != nullptr) {
        return expandOrdered<Bits>(matrix, row, begin, count, out);
    }
    const std::int64_t first = matrix.firstScale(row);
    const std::int64_t end = begin + count;
    float scales[kPart];
    while (begin < end) {
        const std::int64_t group = begin / matrix.group;
        const std::int64_t groups = std::min(kPart, (end - 1) / matrix.group + 1 - group);
        loadFloats(matrix.scaleType, matrix.scales, first + group, groups, scales);
        for (std::int64_t g = 0; g < groups; ++g) {
            const std::int64_t stop = std::min(end, (group + g + 1) * matrix.group);
            const int zero = matrix.zeros == nullptr ? middleCode(Bits) : matrix.zeros[first + group + g];
            scaleRun<Bits>(matrix.row(row), begin, stop - begin, zero, scales[g], out);
            out += stop - begin;
            begin = stop;
        }
    }
}

} // namespace

const PackedFormat& int4Format() {
    static const PackedFormat kRow = [] {
        PackedFormat row{WeightFormat::Int4, "int4", "INT4"};
        row.unit = 2;
        row.problem = [](const WeightView& weight) { return groupedProblem(weight, 4); };
        row.expand = expandInteger<4>;
        row.expertShare = 0.72; // as MXFP4, beside which it was measured: docs/notes/int4.md
        return row;
    }();
    return kRow;
}

const PackedFormat& int8Format() {
    static const PackedFormat kRow = [] {
        PackedFormat row{WeightFormat::Int8, "int8", "INT8"};
        row.problem = [](const WeightView& weight) { return groupedProblem(weight, 8); };
        row.expand = expandInteger<8>;
        return row;
    }();
    return kRow;
}

} // namespace vitrine::kernels
