// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/lane_sum.h"
#include "kernels/ops/rowwise/rms_norm.h"
#include "kernels/ops/rowwise/rms_norm_parts.h"

// With r = rsqrt(mean(x^2) + eps) and h = gradOut * weight: gradX = r h - x r^3 mean(h x), gradWeight = sum of gradOut
// x r.

namespace vitrine::kernels {

namespace {

/// A piece of a row: x, gradOut, and the weight as it multiplies.
template <class C> struct NormPiece {
    C x[kRowPiece];
    C grad[kRowPiece];
    C weight[kRowPiece];

    void load(const RmsNormBackward& op, std::int64_t row, std::int64_t begin, std::int64_t count) {
        const RmsNorm& forward = op.forward;
        loadFloats(forward.x.dtype, forward.x.data, row * forward.x.stride0() + begin, count, x);
        loadFloats(op.gradOut.dtype, op.gradOut.data, row * op.gradOut.stride0() + begin, count, grad);
        loadFloats(forward.weight.dtype, forward.weight.data, begin, count, weight);
        if (forward.form == RmsNormOrder::OnePlusWeight) {
            for (std::int64_t i = 0; i < count; ++i) {
                weight[i] += C(1);
            }
        }
    }
};

/// Writes gradX of a row. `sums`, unless null, gets what the row adds to gradWeight; `first` begins the sums.
template <class C> void normRowBack(const RmsNormBackward& op, std::int64_t row, C* sums, bool first) {
    const std::int64_t dim = op.forward.x.shape[1];
    NormPiece<C> piece;
    C values[kRowPiece];
    LaneSum<C> squares;
    LaneSum<C> dots;
    forPieces(dim, [&](std::int64_t begin, std::int64_t count) {
        piece.load(op, row, begin, count);
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] = piece.grad[i] * piece.weight[i];
        }
        squares.add(piece.x, piece.x, count);
        dots.add(values, piece.x, count);
    });
    const C size = static_cast<C>(dim);
    const C inverse = C(1) / std::sqrt(squares.total() / size + static_cast<C>(op.forward.eps));
    const C pull = inverse * inverse * inverse * (dots.total() / size);
    forPieces(dim, [&](std::int64_t begin, std::int64_t count) {
        piece.load(op, row, begin, count);
        std::fill(values, values + count, C(0));
        if (!op.gradResidual.empty()) {
            loadFloats(op.gradResidual.dtype, op.gradResidual.data, row * op.gradResidual.stride0() + begin, count,
                       values);
        }
        for (std::int64_t i = 0; i < count; ++i) {
            values[i] += inverse * (piece.grad[i] * piece.weight[i]) - piece.x[i] * pull;
        }
        storeFloats(op.gradX.dtype, values, count, op.gradX.data, row * op.gradX.stride0() + begin);
        if (sums != nullptr) {
            for (std::int64_t i = 0; i < count; ++i) {
                const C before = first ? C(0) : sums[begin + i];
                sums[begin + i] = before + piece.grad[i] * (piece.x[i] * inverse);
            }
        }
    });
}

template <class C> void normBack(CpuContext& context, const RmsNormBackward& op, const RmsNormParts& parts) {
    const std::int64_t rows = op.forward.x.shape[0];
    const std::int64_t dim = op.forward.x.shape[1];
    forRows(context, parts.count, parts.rows * dim * 6, [&](std::int64_t part) {
        C* sums = op.gradWeight.empty() ? nullptr : parts.sums.x.as<C>() + part * dim;
        const std::int64_t begin = part * parts.rows;
        for (std::int64_t row = begin; row < std::min(rows, begin + parts.rows); ++row) {
            normRowBack<C>(op, row, sums, row == begin);
        }
    });
}

} // namespace

void execute(CpuContext& context, const RmsNormBackward& op) {
    const RmsNormParts parts = partsOf(op);
    if (parts.wide) {
        normBack<double>(context, op, parts);
    } else {
        normBack<float>(context, op, parts);
    }
    if (!op.gradWeight.empty()) {
        execute(context, parts.sums);
    }
}

} // namespace vitrine::kernels
