// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/optimizer/gradient_norm.h"

#include <algorithm>
#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

/// Of elements [begin, end), in eight fixed partial sums that vectorise.
double squaresOf(const TensorView& x, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kLanes = 8;
    double lanes[kLanes] = {};
    double values[kRowPiece];
    forPieces(end - begin, [&](std::int64_t at, std::int64_t count) {
        loadFloats(x.dtype, x.data, begin + at, count, values);
        std::int64_t i = 0;
        for (; i + kLanes <= count; i += kLanes) {
            for (std::int64_t lane = 0; lane < kLanes; ++lane) {
                lanes[lane] += values[i + lane] * values[i + lane];
            }
        }
        for (; i < count; ++i) {
            lanes[0] += values[i] * values[i];
        }
    });
    double sum = 0;
    for (const double lane : lanes) {
        sum += lane;
    }
    return sum;
}

} // namespace

void execute(CpuContext& context, const SquaredNorm& op) {
    const std::int64_t total = op.x.shape.count();
    const NormParts parts = normParts(total);
    double* sums = op.scratch.as<double>();
    forRows(context, parts.count, 2 * parts.size, [&](std::int64_t part) {
        const std::int64_t begin = part * parts.size;
        sums[part] = squaresOf(op.x, begin, std::min(total, begin + parts.size));
    });
    double sum = op.accumulate ? *op.out.as<double>() : 0;
    for (std::int64_t part = 0; part < parts.count; ++part) {
        sum += sums[part];
    }
    *op.out.as<double>() = sum;
}

void execute(CpuContext&, const ClipScale& op) {
    const double norm = std::sqrt(*op.squaredNorm.as<const double>());
    const double scale = static_cast<double>(op.maxNorm) / (norm + 1e-6);
    *op.norm.as<float>() = static_cast<float>(norm);
    // A comparison that NaN passes by: the scale is NaN then.
    *op.scale.as<float>() = op.maxNorm == 0 || scale > 1 ? 1.0F : static_cast<float>(scale);
}

} // namespace vitrine::kernels
