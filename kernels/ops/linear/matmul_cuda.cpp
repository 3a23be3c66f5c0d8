// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include "kernels/device/abi/bias_residual.h"
#include "kernels/device/abi/matmul.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/adapter_products.h"
#include "kernels/ops/linear/expanded_weight.h"
#include "kernels/ops/linear/few_rows_cuda.h"
#include "kernels/ops/linear/fp8_gemm_cuda.h"
#include "kernels/ops/linear/int4_gemm_cuda.h"
#include "kernels/ops/linear/packed_rows_cuda.h"
#include "kernels/ops/linear/vendor_product.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/linear/weights_device.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::kernels {

namespace {

/// out += bias (+ residual), what of them is given.
void addBiasAndResidual(CudaContext& context, const TensorView& out, const TensorView& bias,
                        const TensorView& residual) {
    abi::BiasResidualParams params{};
    params.x = out.data;
    params.bias = bias.data;
    params.residual = residual.data;
    params.xStride = out.stride0();
    params.residualStride = residual.empty() ? 0 : residual.stride0();
    params.rows = out.shape[0];
    params.columns = static_cast<int>(out.shape[1]);
    launchFamily(context, "bias_residual", abi::kBiasResidualAbi, params,
                 {{"x_dtype", optionalDtype(out)},
                  {"bias_dtype", optionalDtype(bias)},
                  {"residual_dtype", optionalDtype(residual)},
                  {"rows", out.shape[0]},
                  {"columns", out.shape[1]},
                  {"x_stride", params.xStride},
                  {"residual_stride", params.residualStride},
                  {"aligned", startsAligned(out) && startsAligned(bias) && startsAligned(residual) ? 1 : 0}});
}

void multiplyByVendor(CudaContext& context, const Matmul& op) {
    const bool biasInside = !op.bias.empty() && op.bias.dtype == op.out.dtype && startsAligned(op.bias);
    const bool exact = context.traits().features.exactRows;
    const bool sameType = !op.residual.empty() && op.residual.dtype == op.out.dtype;
    if (exact && sameType && op.residual.data != op.out.data) {
        // So that the sum is rounded once, as it is where the residual is the result's own memory.
        execute(context, Cast{op.residual, op.out});
    }
    const bool inPlace = sameType && (exact || op.residual.data == op.out.data);
    CudaContext::DenseProduct product;
    product.exactRows = exact;
    product.x = op.x.data;
    product.weight = op.weight.data.data;
    product.out = op.out.data;
    product.xType = op.x.dtype;
    product.weightType = op.weight.data.dtype;
    product.outType = op.out.dtype;
    product.m = op.x.shape[0];
    product.n = op.out.shape[1];
    product.k = op.x.shape[1];
    product.xStride = op.x.stride0();
    product.weightStride = op.weight.data.stride0();
    product.outStride = op.out.stride0();
    product.transposedWeight = op.weight.transposed;
    product.bias = biasInside ? op.bias.data : nullptr;
    product.alpha = op.scale;
    product.beta = inPlace ? 1.0F : 0.0F;
    context.multiply(product);
    const TensorView bias = biasInside ? TensorView{} : op.bias;
    const TensorView residual = inPlace ? TensorView{} : op.residual;
    if (!bias.empty() || !residual.empty()) {
        addBiasAndResidual(context, op.out, bias, residual);
    }
}

/// A packed matrix that counts as transposed as it is stored.
WeightView storedForm(const WeightView& weight) {
    WeightView stored = weight;
    if (stored.quantized() && stored.transposed) {
        stored.transposed = false;
        stored.shape = Shape{weight.inFeatures(), weight.outFeatures()};
    }
    return stored;
}

/// The weight as BF16 in the op's scratch.
WeightView expandWeight(CudaContext& context, const Matmul& op) {
    const WeightView stored = storedForm(op.weight);
    const TensorView expanded{op.scratch.data, DType::BF16, stored.shape};
    execute(context, Dequantize{stored, expanded});
    return denseWeight(expanded, op.weight.transposed);
}

/// Any other combination, in float32 arithmetic.
void multiplyInFloat32(CudaContext& context, const Matmul& op) {
    abi::MatmulParams params{};
    params.x = op.x.data;
    params.dense = WeightPointers(op.weight).dense;
    params.bias = op.bias.data;
    params.residual = op.residual.data;
    params.result = op.out.data;
    params.xStride = op.x.stride0();
    params.weightStride = op.weight.quantized() ? 0 : op.weight.data.stride0();
    params.residualStride = op.residual.empty() ? 0 : op.residual.stride0();
    params.resultStride = op.out.stride0();
    params.rows = static_cast<int>(op.x.shape[0]);
    params.in = static_cast<int>(op.x.shape[1]);
    params.out = static_cast<int>(op.out.shape[1]);
    params.scale = op.scale;
    params.packed = packedForDevice(storedForm(op.weight));
    launchFamily(context, "matmul", abi::kMatmulAbi, params,
                 {{"x_dtype", optionalDtype(op.x)},
                  {"w_format", formatNumber(op.weight)},
                  {"w_dtype", denseNumber(op.weight)},
                  {"bias_dtype", optionalDtype(op.bias)},
                  {"residual_dtype", optionalDtype(op.residual)},
                  {"out_dtype", optionalDtype(op.out)},
                  {"transposed", op.weight.transposed ? 1 : 0},
                  {"rows", op.x.shape[0]},
                  {"in", op.x.shape[1]},
                  {"out", op.out.shape[1]}});
}

} // namespace

void execute(CudaContext& context, const Matmul& op) {
    if (!op.adapter.empty()) {
        const bool whole = op.scratch.bytes() >= scratch(op, context.traits());
        AdapterProducts(op, ScratchLayout(op.scratch.data), whole ? context.traits() : DeviceTraits{})
            .forEach([&](const auto& part) { execute(context, part); });
        return;
    }
    if (op.out.shape.count() == 0) {
        return;
    }
    const bool exact = context.traits().features.exactRows; // then nothing is chosen by the number of rows
    if (!exact && op.scale == 1 &&
        multiplyFewRows(context, FewRowsProduct{op.x, {}, {}, {op.weight, op.bias, {}}, op.residual, op.out, 0})) {
        return;
    }
    if (multiplyInt4Tiles(context, op) || (!exact && (multiplyPackedRows(context, op) || multiplyFp8(context, op)))) {
        return;
    }
    if (!op.weight.quantized() && vendorMultiplies(op.x.dtype, op.weight.data.dtype, op.out.dtype)) {
        multiplyByVendor(context, op);
    } else if (expandsWeight(op, context.traits()) && !op.scratch.empty() && op.scratch.bytes() >= expandedBytes(op)) {
        Matmul dense = op;
        dense.weight = expandWeight(context, op);
        multiplyByVendor(context, dense);
    } else {
        multiplyInFloat32(context, op);
    }
}

} // namespace vitrine::kernels
