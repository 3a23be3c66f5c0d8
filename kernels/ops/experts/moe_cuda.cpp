// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/moe.h"

#include "kernels/device/abi/grouped_matmul.h"
#include "kernels/device/abi/moe_combine.h"
#include "kernels/device/abi/router_given.h"
#include "kernels/device/abi/router_groups.h"
#include "kernels/device/abi/router_topk.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

namespace {

/// What the kernels of all orders take.
template <class Params> Params routerParameters(const RouterTopK& op) {
    Params parameters{};
    parameters.logits = op.logits.data;
    parameters.ids = op.ids.as<int>();
    parameters.weights = op.weights.as<float>();
    parameters.stride = op.logits.stride0();
    parameters.tokens = toInt(op.logits.shape[0], RouterTopK::kName, "logits");
    parameters.k = toInt(op.ids.shape[1], RouterTopK::kName, "ids");
    parameters.normalize = op.normalize ? 1 : 0;
    return parameters;
}

void routeBySigmoid(CudaContext& context, const RouterTopK& op) {
    const RouterGroups& by = op.groups;
    auto parameters = routerParameters<abi::RouterGroupsParams>(op);
    parameters.correction = by.correction.data;
    parameters.groups = static_cast<int>(by.groups);
    parameters.kept = static_cast<int>(by.kept);
    parameters.scale = by.scale;
    launchFamily(context, "router_groups", abi::kRouterGroupsAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)},
                  {"c_dtype", dtypeNumber(by.correction.empty() ? op.logits : by.correction)},
                  {"experts", op.logits.shape[1]},
                  {"groups", by.groups},
                  {"tokens", op.logits.shape[0]}});
}

void routeByChoice(CudaContext& context, const RouterTopK& op) {
    const auto parameters = routerParameters<abi::RouterTopkParams>(op);
    launchFamily(context, "router_topk", abi::kRouterTopkAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)},
                  {"experts", op.logits.shape[1]},
                  {"order", static_cast<std::int64_t>(op.order)},
                  {"tokens", op.logits.shape[0]}});
}

/// Replaces the choice where experts are given. It comes after the kernels of the choice, so that these know nothing of
/// it and `differing` compares with what they really choose.
void takeGiven(CudaContext& context, const RouterTopK& op) {
    auto parameters = routerParameters<abi::RouterGivenParams>(op);
    parameters.given = op.given.as<const int>();
    parameters.differing = op.differing.as<float>();
    parameters.experts = static_cast<int>(op.logits.shape[1]);
    parameters.order = static_cast<int>(op.order);
    parameters.scale = op.groups.scale;
    launchFamily(context, "router_given", abi::kRouterGivenAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.logits)}, {"tokens", op.logits.shape[0]}});
}

} // namespace

void execute(CudaContext& context, const RouterTopK& op) {
    if (op.order == RouterOrder::SigmoidThenTopK) {
        routeBySigmoid(context, op);
    } else {
        routeByChoice(context, op);
    }
    if (!op.given.empty()) {
        takeGiven(context, op);
    }
}

void execute(CudaContext& context, const RouterTopKBackward& op) {
    const RouterTopK& forward = op.forward;
    if (forward.logits.shape.count() == 0) {
        return;
    }
    if (op.gradWeights.dtype != DType::F32) {
        throw base::Unsupported("RouterTopKBackward: gradWeights: on a GPU it must be float32; choose the CPU");
    }
    abi::RouterTopKBackwardParams params{};
    params.logits = forward.logits.data;
    params.ids = forward.ids.as<const int>();
    params.gradWeights = op.gradWeights.as<const float>();
    params.gradProbabilities = op.gradProbabilities.as<const float>();
    params.gradLogits = op.gradLogits.data;
    params.logitsStride = forward.logits.stride0();
    params.gradStride = op.gradLogits.stride0();
    params.tokens = toInt(forward.logits.shape[0], RouterTopKBackward::kName, "logits");
    params.experts = static_cast<int>(forward.logits.shape[1]);
    params.k = static_cast<int>(forward.ids.shape[1]);
    params.topKFirst = forward.order == RouterOrder::TopKThenSoftmax ? 1 : 0;
    params.normalize = forward.normalize ? 1 : 0;
    launchFamily(context, "router_topk_backward", abi::kRouterTopKBackwardAbi, params,
                 {{"x_dtype", dtypeNumber(forward.logits)},
                  {"out_dtype", dtypeNumber(op.gradLogits)},
                  {"tokens", forward.logits.shape[0]}});
}

void execute(CudaContext& context, const MoeCombine& op) {
    if (op.out.shape.count() == 0) {
        return;
    }
    const std::int64_t hidden = op.out.shape[1];
    abi::MoeCombineParams parameters{};
    parameters.x = op.x.data;
    parameters.weights = op.weights.as<const float>();
    parameters.places = op.places.as<const int>();
    parameters.residual = op.residual.data;
    parameters.out = op.out.data;
    parameters.xStride = op.x.stride0();
    parameters.residualStride = op.residual.empty() ? 0 : op.residual.stride0();
    parameters.outStride = op.out.stride0();
    parameters.tokens = op.out.shape[0];
    parameters.hidden = hidden;
    parameters.k = toInt(op.x.shape[0] / op.out.shape[0], MoeCombine::kName, "x");
    launchFamily(context, "moe_combine", abi::kMoeCombineAbi, parameters,
                 {{"x_dtype", dtypeNumber(op.x)},
                  {"residual_dtype", dtypeNumber(op.residual.empty() ? op.out : op.residual)},
                  {"out_dtype", dtypeNumber(op.out)},
                  {"vector", pieceOf(hidden, {&op.x, &op.residual, &op.out})},
                  {"tokens", op.out.shape[0]},
                  {"hidden", hidden}});
}

} // namespace vitrine::kernels
