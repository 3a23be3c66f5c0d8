// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

void multiplyByTiles(CpuContext& context, const Product& product) {
    const std::int64_t outTiles = (product.matrix.out + kTileOutputs - 1) / kTileOutputs;
    const std::int64_t rowTiles = (product.rows + kTileRows - 1) / kTileRows;
    const bool wide = product.x.dtype == DType::F64;
    const SimdLevel simd = context.simd();
    context.pool().parallelFor(outTiles * rowTiles, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t tile = begin; tile < end; ++tile) {
            const std::int64_t row = tile / outTiles * kTileRows;
            const std::int64_t out = tile % outTiles * kTileOutputs;
            const std::int64_t rowCount = std::min(kTileRows, product.rows - row);
            const std::int64_t outCount = std::min(kTileOutputs, product.matrix.out - out);
            if (wide) {
                multiplyDouble(product, row, rowCount, out, outCount);
            } else {
                multiplyTile(simd, product, row, rowCount, out, outCount);
            }
        }
    });
}

void multiplyByDots(CpuContext& context, const Product& product, float* prepared) {
    const SimdLevel simd = context.simd();
    forRows(context, product.rows, product.matrix.in * 4, [&](std::int64_t row) {
        prepareRow(simd, product.matrix, product.x, row, prepared + row * preparedSize(product.matrix.in));
    });
    context.pool().parallelFor(product.matrix.out, 8, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t out = begin; out < end; out += kGemvOutputs) {
            multiplyFewRows(simd, product, prepared, 0, product.rows, out, std::min(kGemvOutputs, end - out));
        }
    });
}

} // namespace

void execute(CpuContext& context, const Matmul& op) {
    Product product;
    product.matrix = matrixOf(op.weight, 0);
    product.x = op.x;
    product.out = op.out;
    product.bias = op.bias;
    product.residual = op.residual;
    product.rows = op.x.shape[0];
    if (product.rows == 0) {
        return;
    }
    if (product.rows <= kGemvRows && op.x.dtype != DType::F64) {
        multiplyByDots(context, product, op.scratch.as<float>());
    } else {
        multiplyByTiles(context, product);
    }
}

} // namespace vitrine::kernels
