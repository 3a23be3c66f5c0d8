// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/int4_gemm_cuda.h"

#include <array>

#include "kernels/cuda/cuda_tensor_map.h"
#include "kernels/device/abi/int4_gemm.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/int4_product.h"
#include "kernels/ops/linear/int4_tiles.h"

namespace vitrine::kernels {

namespace {

/// Up to so many rows packed_rows is as fast or faster; for weights of up to so many bytes up to twice as many, because
/// its blocks are smaller.
constexpr std::int64_t kFewRows = 8;
constexpr std::int64_t kSmallWeight = 10 << 20;

/// A matrix of 16-bit numbers in boxes of 64 columns.
void encodeMatrix(const void* data, std::int64_t columns, std::int64_t rows, std::int64_t stride, std::int64_t boxRows,
                  abi::TensorMap& map) {
    const std::array extents = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)};
    const std::array strides = {static_cast<std::uint64_t>(stride)};
    const std::array<std::uint32_t, 2> box = {64, static_cast<std::uint32_t>(boxRows)};
    encodeTensorMap({data, DType::BF16, extents, strides, box}, map.bytes);
}

bool fitsInt4Tiles(const CudaContext& context, const Matmul& op) {
    const std::int64_t rows = op.x.shape[0];
    const bool few = rows <= kFewRows || (rows <= 2 * kFewRows && op.weight.data.bytes() < kSmallWeight);
    return context.device().major == 9 && (!few || context.traits().features.exactRows) && takesInt4Tiles(op) &&
           startsAligned(op.weight.data) && rowsAligned(op.x) && rowsAligned(op.out);
}

/// Whether registers hold the scales and zeros of a chunk of 256 inputs beside the sums of two row tiles.
bool holdsGroups(const WeightView& weight, bool whole) {
    return weight.group >= 128 ? whole || weight.zeros.empty()
                               : whole && weight.zeros.empty() && weight.scales.dtype != DType::F32;
}

abi::Int4GemmParams gemmParameters(const Matmul& op, const Int4Tiles& tiles) {
    const WeightView& weight = op.weight;
    const std::int64_t in = weight.inFeatures();
    const std::int64_t out = weight.outFeatures();
    abi::Int4GemmParams params{};
    encodeMatrix(op.x.data, in, op.x.shape[0], op.x.stride0(), tiles.columns, params.xMap);
    encodeMatrix(weight.data.data, in / 4, out, in / 4, 64, params.codeMap);
    params.scales = weight.scales.data;
    params.zeros = weight.zeros.as<const unsigned char>();
    params.bias = op.bias.data;
    params.residual = op.residual.data;
    params.result = op.out.data;
    params.residualStride = op.residual.empty() ? 0 : op.residual.stride0();
    params.resultStride = op.out.stride0();
    params.rows = toInt(op.x.shape[0], Matmul::kName, "x");
    params.in = toInt(in, Matmul::kName, "weight");
    params.out = toInt(out, Matmul::kName, "weight");
    params.groups = static_cast<int>((in + weight.group - 1) / weight.group);
    return params;
}

} // namespace

bool multiplyInt4Tiles(CudaContext& context, const Matmul& op) {
    if (!fitsInt4Tiles(context, op)) {
        return false;
    }
    const WeightView& weight = op.weight;
    const bool whole = weight.inFeatures() % 256 == 0;
    const Int4Tiles tiles = context.traits().features.exactRows
                                ? Int4Tiles::exact()
                                : Int4Tiles::choose(op.x.shape[0], weight.inFeatures(), weight.outFeatures(),
                                                    context.device().multiprocessors, holdsGroups(weight, whole));
    const abi::Int4GemmParams params = gemmParameters(op, tiles);
    const std::array<KernelVariable, 18> variables{{{"columns", tiles.columns},
                                                    {"row_tiles", tiles.rowTiles},
                                                    {"split", tiles.split},
                                                    {"parts", tiles.parts},
                                                    {"code_stages", tiles.codeStages},
                                                    {"x_stages", tiles.xStages},
                                                    {"whole", whole ? 1 : 0},
                                                    {"group", weight.group},
                                                    {"zeros", weight.zeros.empty() ? 0 : 1},
                                                    {"scale_dtype", dtypeNumber(weight.scales)},
                                                    {"bias_dtype", optionalDtype(op.bias)},
                                                    {"residual_dtype", optionalDtype(op.residual)},
                                                    {"out_dtype", dtypeNumber(op.out)},
                                                    {"outputs", tiles.outputs()},
                                                    {"x_inputs", tiles.rowTiles > 1 ? 64 : 128},
                                                    {"in", weight.inFeatures()},
                                                    {"out", weight.outFeatures()},
                                                    {"rows", op.x.shape[0]}}};
    return launchIfFits(context, callOf("int4_gemm", abi::kInt4GemmAbi, params, variables));
}

} // namespace vitrine::kernels
