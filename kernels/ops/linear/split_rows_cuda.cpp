// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/split_rows_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/cuda/cuda_tensor_map.h"
#include "kernels/device/abi/gemv_split.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kRanks = 4;
constexpr std::int64_t kColumnBlock = 64; ///< columns of x
constexpr std::int64_t kSplitRowsStatic =
    2048; ///< shared memory that is not in the expressions: barriers, sums of squares

} // namespace

std::int64_t clustersAtOnce(const CudaContext& context) {
    return std::int64_t{context.device().multiprocessors} * 7 / 8 / kRanks;
}

SplitLayout::SplitLayout(std::int64_t dim, std::int64_t rows, std::int64_t ofTile, std::int64_t limit)
    : tokens((rows + 15) / 16 * 16), columns(ofTile) {
    const std::int64_t blocks = (dim / kColumnBlock + kRanks - 1) / kRanks;
    const std::int64_t stage = columns * kColumnBlock * 2;
    const std::int64_t fixed = blocks * tokens * kColumnBlock * 2 + kRanks * 16 * columns * 4;
    stages = stage == 0 ? 0 : std::clamp<std::int64_t>((limit - kSplitRowsStatic - fixed) / stage, 0, blocks);
    sharedBytes = stages * stage + fixed;
}

std::int64_t narrowest(std::initializer_list<std::int64_t> columns, std::int64_t features, std::int64_t clusters) {
    const auto* const found = std::find_if(columns.begin(), columns.end(),
                                           [&](std::int64_t each) { return (features + each - 1) / each <= clusters; });
    return found == columns.end() ? 0 : *found;
}

abi::TensorMap weightMap(const TensorView& weight, std::int64_t rows) {
    const std::uint64_t extents[] = {static_cast<std::uint64_t>(weight.shape[1]),
                                     static_cast<std::uint64_t>(weight.shape[0])};
    const std::uint64_t strides[] = {static_cast<std::uint64_t>(weight.stride0())};
    const std::uint32_t box[] = {kColumnBlock, static_cast<std::uint32_t>(rows)};
    abi::TensorMap map{};
    encodeTensorMap({weight.data, weight.dtype, extents, strides, box}, map.bytes);
    return map;
}

bool multiplySplit(CudaContext& context, const FewRowsProduct& product) {
    const std::int64_t rows = product.out.shape[0];
    const TensorView& weight = product.linear.weight.data;
    const std::int64_t columns = narrowest({32, 64, 96, 112, 128}, weight.shape[0], clustersAtOnce(context));
    if (rows == 1 || rows > kMaxSplitRows || columns == 0) { // one row: weight_stream.cuh is as fast
        return false;
    }
    abi::GemvSplitParams params{};
    static_cast<abi::GemvParams&>(params) = gemvParameters(product);
    const SplitLayout layout(weight.shape[1], rows, columns, context.device().sharedPerBlock);
    const auto variables = gemvVariables(product, {{"tokens", layout.tokens},
                                                   {"columns", layout.columns},
                                                   {"stages", layout.stages},
                                                   {"shared_bytes", layout.sharedBytes}});
    const KernelCall call = callOf("gemv_split", abi::kGemvSplitAbi, params, variables);
    if (!context.fits(call)) {
        return false;
    }
    params.weightMap = weightMap(weight, layout.columns);
    context.launch(call);
    return true;
}

} // namespace vitrine::kernels
