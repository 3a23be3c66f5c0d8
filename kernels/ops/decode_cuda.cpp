// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/decode_cuda.h"

#include <algorithm>
#include <array>

#include "kernels/device/abi/dense_mlp.h"
#include "kernels/device/abi/gemv.h"
#include "kernels/device/abi/qkv_project.h"
#include "kernels/device/abi/route.h"
#include "kernels/ops/cuda_call.h"
#include "kernels/ops/split_rows_cuda.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kMaxRows = 16;
constexpr std::int64_t kWarps = 15;    ///< that multiply in weight_stream.cuh
constexpr std::int64_t kUnit = 8;      ///< weight rows
constexpr std::int64_t kStatic = 4096; ///< shared memory that is not in the expressions: barriers, sums of squares

/// How weight_stream.cuh lays out shared memory: as many slots as fit beside the sums and the rows of x.
struct StreamLayout {
    std::int64_t tokens = 1; ///< a kernel for one row and one for each tile of rows serve all batches
    std::int64_t slots = 0, slotRows = 4, sharedBytes = 0;

    StreamLayout(std::int64_t dim, std::int64_t rows, std::int64_t limit) {
        tokens = rows == 1 ? 1 : rows <= 8 ? 8 : 16;
        const std::int64_t slabs = (dim + 4095) / 4096;
        const std::int64_t slab = ((dim + slabs - 1) / slabs + 63) / 64 * 64;
        slotRows = slab > 3072 ? 2 : 4;
        const std::int64_t rowBytes = slabs == 1 ? dim * 2 : slab * 2;
        const std::int64_t slotBytes = (slotRows * rowBytes + 127) / 128 * 128;
        const std::int64_t buffers = tokens == 1 ? 8 : 4;
        const std::int64_t rowOfX = (dim * 2 + 63) / 128 * 128 + 64;
        const std::int64_t fixed = buffers * kWarps * kUnit * tokens * 4 + tokens * rowOfX;
        slots = std::clamp<std::int64_t>((limit - kStatic - fixed) / slotBytes, 0, kMaxSlots);
        sharedBytes = slots * slotBytes + fixed;
        if (slots * slotRows < kUnit) {
            slots = 0;
        }
    }

private:
    static constexpr std::int64_t kMaxSlots = 12;
};

template <std::size_t Count> using Variables = std::array<KernelVariable, Count>;

} // namespace

abi::GemvParams gemvParameters(const FewRowsProduct& product) {
    const TensorView& weight = product.linear.weight.dense;
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
    if (rows > kMaxRows) {
        return false;
    }
    const TensorView& weight = product.linear.weight.dense;
    const abi::GemvParams params = gemvParameters(product);
    const StreamLayout layout(weight.shape[1], rows, context.device().sharedPerBlock);
    const Variables<15> variables{{{"x_dtype", dtypeNumber(product.x)},
                                   {"w_dtype", dtypeNumber(weight)},
                                   {"norm_dtype", dtypeOrBf16(product.norm.weight)},
                                   {"bias_dtype", dtypeOrBf16(product.linear.bias)},
                                   {"residual_dtype", dtypeOrBf16(product.residual)},
                                   {"out_dtype", dtypeNumber(product.out)},
                                   {"form", formOf(product.norm)},
                                   {"dim", weight.shape[1]},
                                   {"out", weight.shape[0]},
                                   {"rows", rows},
                                   {"tokens", layout.tokens},
                                   {"slots", layout.slots},
                                   {"slot_rows", layout.slotRows},
                                   {"shared_bytes", layout.sharedBytes},
                                   {"aligned", rowsAligned(product.x) && startsAligned(product.norm.weight) ? 1 : 0}}};
    return launchIfFits(context, callOf("gemv", abi::kGemvAbi, params, variables));
}

namespace {

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

bool projectFewTokens(CudaContext& context, const QkvProject& op, const QkvProjectPlan& plan) {
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
        params.weight[i] = linears[i]->weight.dense.data;
        params.bias[i] = linears[i]->bias.data;
        params.out[i] = outs[i]->data;
        params.outStride[i] = outs[i]->stride0();
        const std::int64_t type = optionalDtype(linears[i]->bias);
        same = same && linears[i]->weight.dense.dtype == DType::BF16 && outs[i]->dtype == DType::BF16 &&
               (type == 0 || biasType == 0 || type == biasType);
        biasType = type == 0 ? biasType : type;
    }
    params.positions = op.positions.as<const int>();
    params.sequence = op.sequence.as<const int>();
    params.inverseFrequency = op.inverseFrequency.as<const float>();
    params.xStride = op.x.stride0();
    const bool writesApart =
        plan.write && plan.write->rounds; // warps hold parts of rows, and a scale needs a whole one
    const bool writes = op.writeCache && !writesApart;
    params.cache = writes ? kvParameters(op.cache, QkvProject::kName) : abi::KvViewParams{};
    params.tokens = static_cast<int>(tokens);
    params.heads = static_cast<int>(op.outQ.shape[1]);
    params.kvHeads = static_cast<int>(op.outK.shape[1]);
    params.writeCache = writes ? 1 : 0;
    params.eps = op.norm.eps;
    params.ropeScale = op.ropeScale;
    const bool done = (same && projectSplit(context, op, params, biasType)) ||
                      (tokens <= kMaxRows && projectInStream(context, op, params, same, biasType));
    if (done && writesApart) {
        execute(context, *plan.write);
    }
    return done;
}

bool activateFewTokens(CudaContext& context, const DenseMlp& op, const TensorView& active) {
    const std::int64_t rows = op.x.shape[0];
    if (rows == 0 || rows > kMaxRows || !packedMatrix(op.gate.weight) || !packedMatrix(op.up.weight)) {
        return false;
    }
    abi::DenseMlpParams params{};
    params.x = op.x.data;
    params.normWeight = op.norm.weight.data;
    params.weight[0] = op.gate.weight.dense.data;
    params.weight[1] = op.up.weight.dense.data;
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
    const bool same = op.gate.weight.dense.dtype == DType::BF16 && op.up.weight.dense.dtype == DType::BF16 &&
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
    params.router = op.router.weight.dense.data;
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
                                   {"w_dtype", dtypeNumber(op.router.weight.dense)},
                                   {"norm_dtype", dtypeNumber(op.norm.weight)},
                                   {"bias_dtype", dtypeOrBf16(op.router.bias)},
                                   {"form", formOf(op.norm)},
                                   {"order", static_cast<std::int64_t>(op.order)},
                                   {"dim", op.x.shape[1]},
                                   {"experts", op.router.weight.dense.shape[0]},
                                   {"tokens", tokens},
                                   {"aligned", aligned ? 1 : 0}}};
    return launchIfFits(context, callOf("route", abi::kRouteAbi, params, variables));
}

} // namespace vitrine::kernels
