// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul_gradients.h"

#include <utility>

#include "kernels/ops/linear/input_gradient.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

void execute(CpuContext& context, const MatmulInputGradient& op) {
    if (!op.weight.quantized()) {
        execute(context, asMatmul(op));
        return;
    }
    Product product;
    product.matrix = matrixOf(op.weight, 0);
    std::swap(product.matrix.out, product.matrix.in);
    product.matrix.transposed = true;
    product.x = op.gradOut;
    product.out = op.gradX;
    product.residual = op.accumulate ? op.gradX : TensorView{};
    product.scale = op.scale;
    product.rows = op.gradOut.shape[0];
    multiplyByTiles(context, product);
}

void execute(CpuContext& context, const MatmulWeightGradient& op) {
    multiplyByTiles(context, weightGradientProduct(op.x, op.gradOut, op.gradWeight, op.accumulate));
}

} // namespace vitrine::kernels
