// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/int4_rows_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/device/abi/int4_rows.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

namespace {

/// How a launch divides its work. Two blocks of few rows share a multiprocessor, so that one loads while the other
/// ends; sums of more rows take the registers of both.
struct Int4Launch {
    std::int64_t tiles = 1;    ///< of 8 rows, at a time
    std::int64_t rowTiles = 2; ///< of 16 outputs, in a block
    std::int64_t warps = 8;
    std::int64_t blocks = 2; ///< of a multiprocessor

    /// `rows` of one matrix, `outputs` of all matrices that work at once. Blocks that are too tall leave
    /// multiprocessors without work.
    Int4Launch(const WeightView& weight, std::int64_t rows, std::int64_t outputs, int multiprocessors) {
        if (rows > 8) {
            tiles = rows > 16 ? 4 : 2;
            rowTiles = rows > 16 || weight.group < 128 || !weight.zeros.empty() ? 2 : 4; // what the registers hold
            blocks = 1;
        }
        while (rowTiles > 1 && outputs / (16 * rowTiles) < multiprocessors * 3 / 4) {
            rowTiles /= 2;
        }
    }
};

abi::Int4RowsParams int4Parameters(const Int4Product& product) {
    const WeightView& weight = product.weight;
    abi::Int4RowsParams params{};
    params.x = product.x.data;
    params.data = weight.data.as<const unsigned char>();
    params.scales = weight.scales.data;
    params.zeros = weight.zeros.as<const unsigned char>();
    params.bias = product.bias.data;
    params.residual = product.residual.data;
    params.result = product.out.data;
    params.tileCount = product.tileCount;
    params.tiles = product.tiles;
    params.slots = product.slots;
    params.xStride = product.x.stride0();
    params.biasStride = product.bias.empty() || product.bias.shape.rank() < 2 ? 0 : product.bias.stride0();
    params.residualStride = product.residual.empty() ? 0 : product.residual.stride0();
    params.resultStride = product.out.stride0();
    params.rows = toInt(product.rows, Matmul::kName, "x");
    params.in = toInt(weight.inFeatures(), Matmul::kName, "weight");
    params.out = toInt(weight.outFeatures(), Matmul::kName, "weight");
    params.groups = static_cast<int>((weight.inFeatures() + weight.group - 1) / weight.group);
    params.pairsPerRow = static_cast<int>(product.pairsPerRow);
    return params;
}

} // namespace

bool takesInt4(const TensorView& x, const WeightView& weight, const TensorView& out) {
    return weight.format == WeightFormat::Int4 && !weight.transposed && weight.order.empty() && weight.rowGroup == 1 &&
           weight.inFeatures() % 32 == 0 && weight.group % 32 == 0 && startsAligned(weight.data) &&
           x.dtype == DType::BF16 && (out.dtype == DType::BF16 || out.dtype == DType::F32);
}

bool multiplyInt4Rows(CudaContext& context, const Int4Product& product) {
    const WeightView& weight = product.weight;
    if (!takesInt4(product.x, weight, product.out)) {
        return false;
    }
    const abi::Int4RowsParams params = int4Parameters(product);
    const Int4Launch launch(weight, product.rows, weight.outFeatures() * std::min(product.tileBound, weight.experts()),
                            context.device().multiprocessors);
    const std::array<KernelVariable, 17> variables{{{"tiles", launch.tiles},
                                                    {"row_tiles", launch.rowTiles},
                                                    {"warps", launch.warps},
                                                    {"blocks", launch.blocks},
                                                    {"whole", weight.inFeatures() % 128 == 0 ? 1 : 0},
                                                    {"group", weight.group},
                                                    {"zeros", weight.zeros.empty() ? 0 : 1},
                                                    {"scale_dtype", dtypeNumber(weight.scales)},
                                                    {"grouped", product.tileCount == nullptr ? 0 : 1},
                                                    {"bias_dtype", optionalDtype(product.bias)},
                                                    {"residual_dtype", optionalDtype(product.residual)},
                                                    {"out_dtype", dtypeNumber(product.out)},
                                                    {"in", weight.inFeatures()},
                                                    {"out", weight.outFeatures()},
                                                    {"rows", product.rows},
                                                    {"tile_bound", product.tileBound},
                                                    {"x_aligned", rowsAligned(product.x) ? 1 : 0}}};
    return launchIfFits(context, callOf("int4_rows", abi::kInt4RowsAbi, params, variables));
}

bool multiplyInt4Rows(CudaContext& context, const Matmul& op) {
    if (op.x.shape[0] > kMaxInt4Rows || op.scale != 1) {
        return false;
    }
    Int4Product product;
    product.x = op.x;
    product.weight = op.weight;
    product.bias = op.bias;
    product.residual = op.residual;
    product.out = op.out;
    product.rows = op.x.shape[0];
    return multiplyInt4Rows(context, product);
}

} // namespace vitrine::kernels
