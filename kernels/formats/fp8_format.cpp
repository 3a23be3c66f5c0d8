// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/formats/fp8_format.h"

#include <algorithm>

#include "kernels/core/floats.h"

namespace vitrine::kernels {

namespace {

std::string fp8Problem(const WeightView& weight) {
    if (!weight.zeros.empty() || !weight.order.empty()) {
        return "FP8 weights have neither zeros nor an order";
    }
    return groupedProblem(weight, 8);
}

void expandFp8(const PackedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count, float* out) {
    const std::int64_t first = matrix.firstScale(row);
    const std::int64_t end = begin + count;
    while (begin < end) {
        const std::int64_t stop = std::min(end, (begin / matrix.group + 1) * matrix.group);
        float scale = 0;
        loadFloats(matrix.scaleType, matrix.scales, first + begin / matrix.group, 1, &scale);
        for (; begin < stop; ++begin) {
            *out++ = e4m3ToFloat(matrix.row(row)[begin]) * scale;
        }
    }
}

} // namespace

const PackedFormat& fp8Format() {
    static const PackedFormat kRow = [] {
        PackedFormat row{WeightFormat::Fp8, "fp8", "FP8", DType::F8E4M3};
        row.problem = fp8Problem;
        row.expand = expandFp8;
        return row;
    }();
    return kRow;
}

} // namespace vitrine::kernels
