// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/decode_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/device/abi/dense_mlp.h"
#include "kernels/device/abi/qkv_project.h"
#include "kernels/device/abi/route.h"
#include "kernels/ops/attention/kv_call.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/linear/few_rows_cuda.h"

namespace vitrine::kernels {

namespace {

template <std::size_t Count> using Variables = std::array<KernelVariable, Count>;

/// `same`: the types of weights and results are BF16, biases all of biasType or absent.
bool projectInStream(CudaContext& context, const QkvProject& op, const abi::QkvProjectParams& params, bool same,
                     std::int64_t biasType) {
    const StreamLayout layout(op.x.shape[1], params.tokens, context.device().sharedPerBlock);
    const std::int64_t pairs = static_cast<std::int64_t>(params.heads + 2 * params.kvHeads) * op.outQ.shape[2] / 2;
    const Variables<14> variables{{{"x_dtype", dtypeNumber(op.x)},
                                   {"bf16", same ? 1 : 0},
                                   {"norm_dtype", dtypeOrBf16(op.norm.weight)},
                                   {"bias_dtype", biasType == 0 ? static_cast<std::int64_t>(DType::BF16) : biasType},
                                   {"cache_dtype", dtypeOrBf16(params.writeCache != 0 ? op.cache.keys : TensorView{})},
                                   {"form", formOf(op.norm)},
                                   {"dim", op.x.shape[1]},
                                   {"head_dim", op.outQ.shape[2]},
                                   {"pairs", pairs},
                                   {"tokens", layout.tokens},
                                   {"slots", layout.slots},
                                   {"slot_rows", layout.slotRows},
                                   {"shared_bytes", layout.sharedBytes},
                                   {"aligned", rowsAligned(op.x) && startsAligned(op.norm.weight) ? 1 : 0}}};
    return launchIfFits(context, callOf("qkv_project", abi::kQkvProjectAbi, params, variables));
}

} // namespace

bool projectFewTokens(CudaContext& context, const QkvProject& op, const QkvProjectPrimitives& primitives) {
    const std::int64_t tokens = op.x.shape[0];
    const std::array<const LinearView*, 3> linears{&op.q, &op.k, &op.v};
    const std::array<const TensorView*, 3> outs{&op.outQ, &op.outK, &op.outV};
    const bool packed =
        std::all_of(linears.begin(), linears.end(), [](const LinearView* l) { return packedMatrix(l->weight); });
    if (tokens == 0 || !packed || !op.qNorm.weight.empty() || !op.kNorm.weight.empty()) {
        return false;
    }
    abi::QkvProjectParams params{};
    params.x = op.x.data;
    params.normWeight = op.norm.weight.data;
    std::int64_t biasType = 0;
    bool same = true;
    for (std::size_t i = 0; i < linears.size(); ++i) {
        params.weight[i] = linears[i]->weight.data.data;
        params.bias[i] = linears[i]->bias.data;
        params.out[i] = outs[i]->data;
        params.outStride[i] = outs[i]->stride0();
        const std::int64_t type = optionalDtype(linears[i]->bias);
        same = same && linears[i]->weight.data.dtype == DType::BF16 && outs[i]->dtype == DType::BF16 &&
               (type == 0 || biasType == 0 || type == biasType);
        biasType = type == 0 ? biasType : type;
    }
    params.positions = op.positions.as<const int>();
    params.sequence = op.sequence.as<const int>();
    params.inverseFrequency = op.inverseFrequency.as<const float>();
    params.xStride = op.x.stride0();
    const bool writesApart =
        primitives.write && primitives.write->rounds; // warps hold parts of rows, and a scale needs a whole one
    const bool writes = op.writeCache && !writesApart;
    params.cache = writes ? kvParameters(op.cache, QkvProject::kName) : abi::KvViewParams{};
    params.tokens = static_cast<int>(tokens);
    params.heads = static_cast<int>(op.outQ.shape[1]);
    params.kvHeads = static_cast<int>(op.outK.shape[1]);
    params.writeCache = writes ? 1 : 0;
    params.eps = op.norm.eps;
    params.ropeScale = op.ropeScale;
    const bool done = (same && projectSplit(context, op, params, biasType)) ||
                      (tokens <= kMaxStreamRows && projectInStream(context, op, params, same, biasType));
    if (done && writesApart) {
        execute(context, *primitives.write);
    }
    return done;
}

bool activateFewTokens(CudaContext& context, const DenseMlp& op, const TensorView& active) {
    const std::int64_t rows = op.x.shape[0];
    if (rows == 0 || rows > kMaxStreamRows || !packedMatrix(op.gate.weight) || !packedMatrix(op.up.weight)) {
        return false;
    }
    abi::DenseMlpParams params{};
    params.x = op.x.data;
    params.normWeight = op.norm.weight.data;
    params.weight[0] = op.gate.weight.data.data;
    params.weight[1] = op.up.weight.data.data;
    params.bias[0] = op.gate.bias.data;
    params.bias[1] = op.up.bias.data;
    params.active = active.data;
    params.xStride = op.x.stride0();
    params.activeStride = active.stride0();
    params.rows = static_cast<int>(rows);
    params.width = static_cast<int>(active.shape[1]);
    params.eps = op.norm.eps;
    const GatedActivation defaults;
    params.alpha = defaults.alpha;
    params.limit = defaults.limit;
    const bool same = op.gate.weight.data.dtype == DType::BF16 && op.up.weight.data.dtype == DType::BF16 &&
                      active.dtype == DType::BF16 && optionalDtype(op.gate.bias) == optionalDtype(op.up.bias);
    const StreamLayout layout(op.x.shape[1], rows, context.device().sharedPerBlock);
    const Variables<13> variables{{{"x_dtype", dtypeNumber(op.x)},
                                   {"bf16", same ? 1 : 0},
                                   {"norm_dtype", dtypeOrBf16(op.norm.weight)},
                                   {"bias_dtype", dtypeOrBf16(op.gate.bias)},
                                   {"activation", static_cast<std::int64_t>(op.activation)},
                                   {"form", formOf(op.norm)},
                                   {"dim", op.x.shape[1]},
                                   {"width", active.shape[1]},
                                   {"tokens", layout.tokens},
                                   {"slots", layout.slots},
                                   {"slot_rows", layout.slotRows},
                                   {"shared_bytes", layout.sharedBytes},
                                   {"aligned", rowsAligned(op.x) && startsAligned(op.norm.weight) ? 1 : 0}}};
    return launchIfFits(context, callOf("dense_mlp", abi::kDenseMlpAbi, params, variables));
}

bool routeTokens(CudaContext& context, const Route& op) {
    const std::int64_t tokens = op.x.shape[0];
    if (tokens == 0 || op.norm.weight.empty() || !packedMatrix(op.router.weight)) {
        return false;
    }
    abi::RouteParams params{};
    params.x = op.x.data;
    params.normWeight = op.norm.weight.data;
    params.router = op.router.weight.data.data;
    params.bias = op.router.bias.data;
    params.normed = op.normed.data;
    params.ids = op.ids.as<int>();
    params.weights = op.weights.as<float>();
    params.xStride = op.x.stride0();
    params.normedStride = op.normed.stride0();
    params.tokens = static_cast<int>(tokens);
    params.k = static_cast<int>(op.ids.shape[1]);
    params.normalize = op.normalize ? 1 : 0;
    params.eps = op.norm.eps;
    const bool aligned = rowsAligned(op.x) && rowsAligned(op.normed) && startsAligned(op.norm.weight);
    const Variables<11> variables{{{"x_dtype", dtypeNumber(op.x)},
                                   {"normed_dtype", dtypeNumber(op.normed)},
                                   {"w_dtype", dtypeNumber(op.router.weight.data)},
                                   {"norm_dtype", dtypeNumber(op.norm.weight)},
                                   {"bias_dtype", dtypeOrBf16(op.router.bias)},
                                   {"form", formOf(op.norm)},
                                   {"order", static_cast<std::int64_t>(op.order)},
                                   {"dim", op.x.shape[1]},
                                   {"experts", op.router.weight.data.shape[0]},
                                   {"tokens", tokens},
                                   {"aligned", aligned ? 1 : 0}}};
    return launchIfFits(context, callOf("route", abi::kRouteAbi, params, variables));
}

} // namespace vitrine::kernels
