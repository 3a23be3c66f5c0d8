// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/linear/adapter_products.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

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
    if (!op.adapter.empty()) {
        AdapterProducts(op, ScratchLayout(op.scratch.data), DeviceTraits{}).forEach([&](const auto& part) {
            execute(context, part);
        });
        return;
    }
    Product product;
    product.matrix = matrixOf(op.weight, 0);
    product.x = op.x;
    product.out = op.out;
    product.bias = op.bias;
    product.residual = op.residual;
    product.scale = op.scale;
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
