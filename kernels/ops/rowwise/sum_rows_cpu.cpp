// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/sum_rows.h"

#include <algorithm>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/rowwise/sum_rows_parts.h"

namespace vitrine::kernels {

namespace {

/// Adds rows [first, last) of x, elements begin .. begin + count - 1, to sums.
template <class C>
void addRowsTo(C* sums, const TensorView& x, std::int64_t first, std::int64_t last, std::int64_t begin,
               std::int64_t count) {
    C values[kRowPiece];
    for (std::int64_t row = first; row < last; ++row) {
        loadFloats(x.dtype, x.data, row * x.stride0() + begin, count, values);
        for (std::int64_t i = 0; i < count; ++i) {
            sums[i] += values[i];
        }
    }
}

template <class C> void sumRows(CpuContext& context, const SumRows& op, const RowParts& parts) {
    const std::int64_t rows = op.x.shape[0];
    const std::int64_t n = op.x.shape[1];
    const std::int64_t pieces = (n + kRowPiece - 1) / kRowPiece;
    const TensorView partial{op.scratch.data, parts.dtype, Shape{parts.count, n}, {}};
    const bool single = parts.count == 1;
    if (!single) {
        forRows(context, parts.count * pieces, parts.rows * kRowPiece, [&](std::int64_t index) {
            const std::int64_t part = index / pieces;
            const std::int64_t begin = index % pieces * kRowPiece;
            const std::int64_t count = std::min(kRowPiece, n - begin);
            C* sums = partial.as<C>() + part * n + begin;
            std::fill(sums, sums + count, C(0));
            addRowsTo(sums, op.x, part * parts.rows, std::min(rows, (part + 1) * parts.rows), begin, count);
        });
    }
    const TensorView& last = single ? op.x : partial;
    forRows(context, pieces, last.shape[0] * kRowPiece, [&](std::int64_t piece) {
        const std::int64_t begin = piece * kRowPiece;
        const std::int64_t count = std::min(kRowPiece, n - begin);
        C sums[kRowPiece] = {};
        addRowsTo(sums, last, 0, last.shape[0], begin, count);
        if (op.accumulate) {
            C before[kRowPiece];
            loadFloats(op.out.dtype, op.out.data, begin, count, before);
            for (std::int64_t i = 0; i < count; ++i) {
                sums[i] += before[i];
            }
        }
        storeFloats(op.out.dtype, sums, count, op.out.data, begin);
    });
}

} // namespace

void execute(CpuContext& context, const SumRows& op) {
    const RowParts parts = partsOf(op);
    if (parts.dtype == DType::F64) {
        sumRows<double>(context, op, parts);
    } else {
        sumRows<float>(context, op, parts);
    }
}

} // namespace vitrine::kernels
