// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Norm, q, k and v products, RoPE and the cache write of up to 64 tokens in one launch
// (kernels/device/fused/qkv_split.cuh).
#include "kernels/device/abi/qkv_split.h"

#include <array>

#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/fused/decode_cuda.h"
#include "kernels/ops/linear/split_rows_cuda.h"

namespace vitrine::kernels {

bool projectSplit(CudaContext& context, const QkvProject& op, const abi::QkvProjectParams& params,
                  std::int64_t biasType) {
    constexpr std::int64_t kFewTokens = 8; // up to here weight_stream.cuh is faster
    constexpr std::int64_t kBox = 32;      // as in qkv_split.cuh
    const std::int64_t headDim = op.outQ.shape[2];
    const std::int64_t features = (params.heads + 2 * params.kvHeads) * headDim;
    const std::int64_t columns = narrowest({64, 128, 192}, features, clustersAtOnce(context));
    const bool paired = rowsAligned(op.outQ) && rowsAligned(op.outK) && rowsAligned(op.outV);
    if (params.tokens <= kFewTokens || params.tokens > kMaxSplitRows || columns == 0 || !paired) {
        return false;
    }
    abi::QkvSplitParams all{};
    static_cast<abi::QkvProjectParams&>(all) = params;
    const SplitLayout layout(op.x.shape[1], params.tokens, columns, context.device().sharedPerBlock);
    const std::array<KernelVariable, 12> variables{
        {{"x_dtype", dtypeNumber(op.x)},
         {"norm_dtype", dtypeOrBf16(op.norm.weight)},
         {"bias_dtype", biasType == 0 ? static_cast<std::int64_t>(DType::BF16) : biasType},
         {"cache_dtype", dtypeOrBf16(params.writeCache != 0 ? op.cache.keys : TensorView{})},
         {"form", formOf(op.norm)},
         {"dim", op.x.shape[1]},
         {"head_dim", headDim},
         {"tiles", (features + columns - 1) / columns},
         {"tokens", layout.tokens},
         {"columns", layout.columns},
         {"stages", layout.stages},
         {"shared_bytes", layout.sharedBytes}}};
    const KernelCall call = callOf("qkv_split", abi::kQkvSplitAbi, all, variables);
    if (!rowsAligned(op.x) || !startsAligned(op.norm.weight) || !context.fits(call)) {
        return false;
    }
    const std::int64_t box = headDim == 2 * kBox ? headDim : kBox;
    all.weightMap[0] = weightMap(op.q.weight.data, box);
    all.weightMap[1] = weightMap(op.k.weight.data, box);
    all.weightMap[2] = weightMap(op.v.weight.data, box);
    context.launch(call);
    return true;
}

} // namespace vitrine::kernels
