// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/lane_sum.h"

namespace vitrine::kernels {

namespace {

template <class C> C sumOfSquares(const RmsNorm& op, std::int64_t row) {
    LaneSum<C> sum;
    C values[kRowPiece];
    forPieces(op.x.shape[1], [&](std::int64_t begin, std::int64_t count) {
        loadFloats(op.x.dtype, op.x.data, row * op.x.stride0() + begin, count, values);
        sum.add(values, values, count);
    });
    return sum.total();
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
