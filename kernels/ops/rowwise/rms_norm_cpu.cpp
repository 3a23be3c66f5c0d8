// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"

namespace vitrine::kernels {

namespace {

/// Sum of squares in sixteen fixed partial sums: vectorises, and is the same for every row count.
template <class C> C sumOfSquares(const RmsNorm& op, std::int64_t row) {
    constexpr std::int64_t kLanes = 16;
    C lanes[kLanes] = {};
    C values[kRowPiece];
    forPieces(op.x.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, values);
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
    C sum = 0;
    for (const C lane : lanes) {
        sum += lane;
    }
    return sum;
}

template <class C> void normRow(const RmsNorm& op, std::int64_t row) {
    const std::int64_t dim = op.x.shape[1];
    const C inverse = C(1) / std::sqrt(sumOfSquares<C>(op, row) / static_cast<C>(dim) + static_cast<C>(op.eps));
    C values[kRowPiece];
    C weights[kRowPiece];
    forPieces(dim, [&](std::int64_t begin, std::int64_t count) {
        loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, values);
        loadFloats(op.weight.dtype, op.weight.data, begin, count, weights);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] *= inverse;
        }
        if (op.form == RmsNormOrder::CastThenScale) {
            roundFloats(op.out.dtype, values, count);
        }
        const C one = op.form == RmsNormOrder::OnePlusWeight ? C(1) : C(0);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] *= one + weights[i];
        }
        storeFloats(op.out.dtype, values, count, op.out.data, row * op.out.stride0() + begin);
    });
}

} // namespace

void execute(CpuContext& context, const RmsNorm& op) {
    const bool wide = op.x.dtype == DType::F64;
    forRows(context, op.x.shape[0], op.x.shape[1] * 2, [&](std::int64_t row) {
        if (wide) {
            normRow<double>(op, row);
        } else {
            normRow<float>(op, row);
        }
    });
}

} // namespace vitrine::kernels
