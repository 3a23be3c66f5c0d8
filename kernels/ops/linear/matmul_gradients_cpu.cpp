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
    product.rows = op.gradOut.shape[0];
    multiplyByTiles(context, product);
}

void execute(CpuContext& context, const MatmulWeightGradient& op) {
    // x is a matrix that leads from the batch's rows to its columns: stored (in, out) as a transposed weight is.
    Product product;
    product.matrix.dtype = op.x.dtype;
    product.matrix.data = op.x.data;
    product.matrix.out = op.x.shape[1];
    product.matrix.in = op.x.shape[0];
    product.matrix.stride = op.x.stride0();
    product.matrix.transposed = true;
    product.x = op.gradOut;
    product.transposedX = true;
    product.out = op.gradWeight;
    product.residual = op.accumulate ? op.gradWeight : TensorView{};
    product.rows = op.gradOut.shape[1];
    multiplyByTiles(context, product);
}

} // namespace vitrine::kernels
