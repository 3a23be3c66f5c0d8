// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weights.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

/// `row` is the matrix's, `outRow` counts the rows of all experts.
void expandRow(const Dequantize& op, const MatrixRef& matrix, std::int64_t row, std::int64_t outRow, std::int64_t in) {
    float values[kRowPiece];
    forPieces(in, [&](std::int64_t begin, std::int64_t count) {
        loadWeights(matrix, row, begin, count, values);
        storeFloats(op.out.dtype, values, count, op.out.data, outRow * in + begin);
    });
}

/// Square tiles keep both sides' lines in the cache.
template <class T> void transposeTiles(CpuContext& context, const TransposeCopy& op) {
    constexpr std::int64_t kTile = 32;
    const int rank = op.x.shape.rank();
    const std::int64_t rows = op.x.shape[rank - 2];
    const std::int64_t columns = op.x.shape[rank - 1];
    const std::int64_t matrices = rows * columns == 0 ? 0 : op.x.shape.count() / (rows * columns);
    const std::int64_t strips = (columns + kTile - 1) / kTile;
    forRows(context, matrices * strips, rows * kTile, [&](std::int64_t index) {
        const T* from = op.x.as<const T>() + index / strips * rows * columns;
        T* to = op.out.as<T>() + index / strips * rows * columns;
        const std::int64_t columnBegin = index % strips * kTile;
        const std::int64_t columnEnd = std::min(columns, columnBegin + kTile);
        for (std::int64_t rowBegin = 0; rowBegin < rows; rowBegin += kTile) {
            const std::int64_t rowEnd = std::min(rows, rowBegin + kTile);
            for (std::int64_t column = columnBegin; column < columnEnd; ++column) {
                for (std::int64_t row = rowBegin; row < rowEnd; ++row) {
                    to[column * rows + row] = from[row * columns + column];
                }
            }
        }
    });
}

} // namespace

void execute(CpuContext& context, const Dequantize& op) {
    const std::int64_t in = op.weight.inFeatures();
    const std::int64_t rows = in == 0 ? 0 : op.weight.shape.count() / in;
    const std::int64_t perExpert = op.weight.outFeatures();
    forRows(context, rows, in,
            [&](std::int64_t row) { expandRow(op, matrixOf(op.weight, row / perExpert), row % perExpert, row, in); });
}

void execute(CpuContext& context, const TransposeCopy& op) {
    switch (bitsOf(op.x.dtype)) {
    case 8:
        return transposeTiles<std::uint8_t>(context, op);
    case 16:
        return transposeTiles<std::uint16_t>(context, op);
    case 32:
        return transposeTiles<std::uint32_t>(context, op);
    case 64:
        return transposeTiles<std::uint64_t>(context, op);
    default:
        throw base::Internal("TransposeCopy: x: elements of this size are not supported");
    }
}

} // namespace vitrine::kernels
