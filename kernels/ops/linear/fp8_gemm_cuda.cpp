// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/fp8_gemm_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/cuda_tensor_map.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "kernels/device/abi/expert_sort.h"
#include "kernels/device/abi/fp8_gemm.h"
#include "kernels/device/abi/fp8_quantize.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/packed_rows.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kBlock = abi::kFp8QuantizeGroup; ///< inputs, and outputs, that share a scale
constexpr std::int64_t kRowTile = abi::kExpertTile;

std::int64_t groupsOf(std::int64_t in) {
    return (in + kBlock - 1) / kBlock;
}

float* scalesIn(const TensorView& room, std::int64_t rows, std::int64_t in) {
    return reinterpret_cast<float*>(room.as<unsigned char>() + rows * in);
}

/// x as E4M3 in the product's room: all bytes, then all scales.
void quantizeRows(CudaContext& context, const Fp8Product& product) {
    const TensorView& x = product.x;
    const std::int64_t rows = x.shape[0], in = x.shape[1];
    abi::Fp8QuantizeParams params{};
    params.x = x.data;
    params.data = product.room.as<unsigned char>();
    params.scales = scalesIn(product.room, rows, in);
    params.xStride = x.stride0();
    params.rows = toInt(rows, Matmul::kName, "x");
    params.in = toInt(in, Matmul::kName, "x");
    params.groups = static_cast<int>(groupsOf(in));
    launchFamily(context, "fp8_quantize", abi::kFp8QuantizeAbi, params,
                 {{"x_dtype", dtypeNumber(x)}, {"in", in}, {"x_stride", x.stride0()}, {"rows", rows}});
}

/// Bytes are copied as if they were half as many numbers of 16 bits, because these have the swizzle of wgmma.
void encodeBytes(const WeightView& weight, abi::TensorMap& map) {
    const auto columns = static_cast<std::uint64_t>(weight.inFeatures() / 2);
    const std::array extents = {columns, static_cast<std::uint64_t>(weight.experts() * weight.outFeatures())};
    const std::array strides = {columns};
    constexpr std::array<std::uint32_t, 2> kBox = {kBlock / 2, kBlock};
    encodeTensorMap({weight.data.data, DType::BF16, extents, strides, kBox}, map.bytes);
}

} // namespace

std::int64_t fp8RowBytes(std::int64_t in) {
    return in + groupsOf(in) * static_cast<std::int64_t>(sizeof(float));
}

bool fitsFp8Product(CudaContext& context, const TensorView& x, const WeightView& weight, const TensorView& out) {
    return weight.format == WeightFormat::Fp8 && context.library().named("fp8_gemm") && context.device().major == 9 &&
           !weight.transposed && weight.group == kBlock && weight.rowGroup == kBlock && weight.inFeatures() % 16 == 0 &&
           weight.outFeatures() % 8 == 0 && x.dtype == DType::BF16 &&
           (out.dtype == DType::BF16 || out.dtype == DType::F32) && startsAligned(weight.data) && rowsAligned(x) &&
           rowsAligned(out);
}

void multiplyFp8(CudaContext& context, const Fp8Product& product) {
    const WeightView& weight = product.weight;
    const std::int64_t rows = product.x.shape[0], in = weight.inFeatures(), out = weight.outFeatures();
    quantizeRows(context, product);
    abi::Fp8GemmParams params{};
    encodeBytes(weight, params.weightMap);
    params.x = product.room.as<unsigned char>();
    params.xScales = scalesIn(product.room, rows, in);
    params.scales = weight.scales.data;
    params.bias = product.bias.data;
    params.residual = product.residual.data;
    params.result = product.out.data;
    params.biasStride = product.bias.empty() || product.bias.shape.rank() < 2 ? 0 : product.bias.stride0();
    params.residualStride = product.residual.empty() ? 0 : product.residual.stride0();
    params.resultStride = product.out.stride0();
    params.rows = toInt(rows, Matmul::kName, "x");
    params.in = toInt(in, Matmul::kName, "weight");
    params.out = toInt(out, Matmul::kName, "weight");
    params.groups = static_cast<int>(groupsOf(in));
    params.scaleRows = static_cast<int>(groupsOf(out));
    params.pairsPerRow = static_cast<int>(product.pairsPerRow);
    params.tileCount = product.tileCount;
    params.tiles = product.tiles;
    params.slots = product.slots;
    const bool inTiles = product.tileBound > 0;
    const std::int64_t rowTiles = inTiles ? product.tileBound : (rows + kRowTile - 1) / kRowTile;
    launchFamily(context, "fp8_gemm", abi::kFp8GemmAbi, params,
                 {{"tiles", inTiles ? 1 : 0},
                  {"scale_dtype", dtypeNumber(weight.scales)},
                  {"bias_dtype", optionalDtype(product.bias)},
                  {"residual_dtype", optionalDtype(product.residual)},
                  {"out_dtype", dtypeNumber(product.out)},
                  {"in", in},
                  {"out", out},
                  {"row_tiles", rowTiles}});
}

bool multiplyFp8(CudaContext& context, const Matmul& op) {
    const std::int64_t rows = op.x.shape[0];
    if (rows <= kMaxPackedRows || !op.adapter.empty() || op.scale != 1 ||
        !fitsFp8Product(context, op.x, op.weight, op.out)) {
        return false;
    }
    std::int64_t together = static_cast<std::int64_t>(op.scratch.bytes()) / fp8RowBytes(op.weight.inFeatures());
    together = together >= rows ? rows : together / kRowTile * kRowTile;
    for (std::int64_t begin = 0; begin < rows && together > 0; begin += together) {
        const std::int64_t end = std::min(begin + together, rows);
        Fp8Product part;
        part.x = sliceRows(op.x, begin, end);
        part.weight = op.weight;
        part.bias = op.bias;
        part.residual = op.residual.empty() ? TensorView{} : sliceRows(op.residual, begin, end);
        part.out = sliceRows(op.out, begin, end);
        part.room = op.scratch;
        multiplyFp8(context, part);
    }
    return together > 0;
}

} // namespace vitrine::kernels
