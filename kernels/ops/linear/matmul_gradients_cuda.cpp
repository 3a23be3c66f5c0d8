// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul_gradients.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/ops/linear/input_gradient.h"
#include "kernels/ops/linear/vendor_product.h"

namespace vitrine::kernels {

namespace {

void clearRows(CudaContext& context, const TensorView& matrix) {
    const std::uint64_t rowBytes = bytesOf(matrix.dtype, matrix.shape[1]);
    for (std::int64_t row = 0; row < matrix.shape[0]; ++row) {
        context.fill(static_cast<std::byte*>(matrix.data) + bytesOf(matrix.dtype, row * matrix.stride0()), 0, rowBytes);
    }
}

} // namespace

void execute(CudaContext& context, const MatmulInputGradient& op) {
    execute(context, asMatmul(op));
}

void execute(CudaContext& context, const MatmulWeightGradient& op) {
    if (!vendorMultiplies(op.gradOut.dtype, op.x.dtype, op.gradWeight.dtype)) {
        throw base::Unsupported(fmt::format(
            "MatmulWeightGradient: the GPU needs x and gradOut of one dtype, and gradWeight of that dtype or "
            "float32; they are {}, {} and {}",
            dtypeName(op.x.dtype), dtypeName(op.gradOut.dtype), dtypeName(op.gradWeight.dtype)));
    }
    if (op.gradWeight.shape.count() == 0) {
        return;
    }
    if (op.x.shape[0] == 0) {
        if (!op.accumulate) {
            clearRows(context, op.gradWeight);
        }
        return;
    }
    CudaContext::DenseProduct product;
    product.x = op.gradOut.data;
    product.weight = op.x.data;
    product.out = op.gradWeight.data;
    product.xType = op.gradOut.dtype;
    product.weightType = op.x.dtype;
    product.outType = op.gradWeight.dtype;
    product.m = op.gradWeight.shape[0];
    product.n = op.gradWeight.shape[1];
    product.k = op.x.shape[0];
    product.xStride = op.gradOut.stride0();
    product.weightStride = op.x.stride0();
    product.outStride = op.gradWeight.stride0();
    product.transposedX = true;
    product.transposedWeight = true;
    product.beta = op.accumulate ? 1.0F : 0.0F;
    context.multiply(product);
}

} // namespace vitrine::kernels
