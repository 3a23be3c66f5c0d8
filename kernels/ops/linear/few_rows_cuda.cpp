// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/few_rows_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/ops/linear/split_rows_cuda.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kWarps = 15; ///< that multiply in weight_stream.cuh
constexpr std::int64_t kUnit = 8;   ///< weight rows
constexpr std::int64_t kFewRowsStatic =
    4096; ///< shared memory that is not in the expressions: barriers, sums of squares
constexpr std::int64_t kMaxSlots = 12;

} // namespace

StreamLayout::StreamLayout(std::int64_t dim, std::int64_t rows, std::int64_t limit) {
    tokens = rows == 1 ? 1 : rows <= 8 ? 8 : 16;
    const std::int64_t slabs = (dim + 4095) / 4096;
    const std::int64_t slab = ((dim + slabs - 1) / slabs + 63) / 64 * 64;
    slotRows = slab > 3072 ? 2 : 4;
    const std::int64_t rowBytes = slabs == 1 ? dim * 2 : slab * 2;
    const std::int64_t slotBytes = (slotRows * rowBytes + 127) / 128 * 128;
    const std::int64_t buffers = tokens == 1 ? 8 : 4;
    const std::int64_t rowOfX = (dim * 2 + 63) / 128 * 128 + 64;
    const std::int64_t fixed = buffers * kWarps * kUnit * tokens * 4 + tokens * rowOfX;
    slots = std::clamp<std::int64_t>((limit - kFewRowsStatic - fixed) / slotBytes, 0, kMaxSlots);
    sharedBytes = slots * slotBytes + fixed;
    if (slots * slotRows < kUnit) {
        slots = 0;
    }
}

abi::GemvParams gemvParameters(const FewRowsProduct& product) {
    const TensorView& weight = product.linear.weight.data;
    abi::GemvParams params{};
    params.x = product.x.data;
    params.gather = product.gather.as<const int>();
    params.normWeight = product.norm.weight.data;
    params.weight = weight.data;
    params.bias = product.linear.bias.data;
    params.residual = product.residual.data;
    params.out = product.out.data;
    params.xStride = product.x.stride0();
    params.weightStride = weight.stride0();
    params.residualStride = product.residual.empty() ? 0 : product.residual.stride0();
    params.outStride = product.out.stride0();
    params.rows = static_cast<int>(product.out.shape[0]);
    params.outFeatures = static_cast<int>(weight.shape[0]);
    params.eps = product.norm.eps;
    params.softCap = product.softCap;
    return params;
}

bool multiplyFewRows(CudaContext& context, const FewRowsProduct& product) {
    const std::int64_t rows = product.out.shape[0];
    if (rows == 0 || !packedMatrix(product.linear.weight)) {
        return false;
    }
    if (multiplySplit(context, product)) {
        return true;
    }
    if (rows > kMaxStreamRows) {
        return false;
    }
    const TensorView& weight = product.linear.weight.data;
    const abi::GemvParams params = gemvParameters(product);
    const StreamLayout layout(weight.shape[1], rows, context.device().sharedPerBlock);
    const auto variables = gemvVariables(product, {{"rows", rows},
                                                   {"tokens", layout.tokens},
                                                   {"slots", layout.slots},
                                                   {"slot_rows", layout.slotRows},
                                                   {"shared_bytes", layout.sharedBytes}});
    return launchIfFits(context, callOf("gemv", abi::kGemvAbi, params, variables));
}

} // namespace vitrine::kernels
