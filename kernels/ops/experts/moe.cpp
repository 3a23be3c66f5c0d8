// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/moe.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/experts/expert_groups.h"
#include "kernels/ops/experts/expert_tiles.h"
#include "kernels/ops/linear/weight_check.h"

namespace vitrine::kernels {

namespace {

void checkGroups(const OpCheck& rule, const RouterTopK& op) {
    const RouterGroups& by = op.groups;
    const std::int64_t experts = op.logits.shape[1];
    rule.require(by.groups >= 1 && experts % by.groups == 0, "groups", "they do not divide the experts");
    rule.require(by.kept >= 1 && by.kept <= by.groups, "groups.kept", "not between 1 and the number of groups");
    const std::int64_t size = experts / by.groups;
    rule.require(by.kept == by.groups || size >= 2, "groups", "a group has a single expert");
    rule.require(op.ids.shape[1] <= by.kept * size, "ids", "more experts are asked for than the groups have");
    if (!by.correction.empty()) {
        rule.shape(by.correction, "groups.correction", {experts});
        rule.floating(by.correction, "groups.correction");
        rule.contiguous(by.correction, "groups.correction");
    }
}

void checkGiven(const OpCheck& rule, const RouterTopK& op) {
    rule.shape(op.given, "given", {op.ids.shape[0], op.ids.shape[1]});
    rule.dtype(op.given, "given", DType::I32);
    rule.contiguous(op.given, "given");
    rule.disjoint(op.given, "given", op.ids, "ids");
    if (!op.differing.empty()) {
        rule.shape(op.differing, "differing", {op.ids.shape[0], 1});
        rule.dtype(op.differing, "differing", DType::F32);
        rule.contiguous(op.differing, "differing");
    }
}

} // namespace

void check(const RouterTopK& op) {
    const OpCheck rule(RouterTopK::kName);
    rule.shape(op.logits, "logits", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.logits, "logits");
    rule.rowsContiguous(op.logits, "logits");
    rule.shape(op.ids, "ids", {op.logits.shape[0], OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    rule.shape(op.weights, "weights", {op.logits.shape[0], op.ids.shape[1]});
    rule.dtype(op.weights, "weights", DType::F32);
    rule.contiguous(op.weights, "weights");
    rule.require(op.ids.shape[1] <= op.logits.shape[1], "ids", "more experts are asked for than there are");
    rule.require(op.logits.shape[1] <= kMaxExperts, "logits", "more than 4096 experts");
    if (op.order == RouterOrder::SigmoidThenTopK) {
        checkGroups(rule, op);
    }
    if (!op.given.empty()) {
        checkGiven(rule, op);
    } else {
        rule.require(op.differing.empty(), "differing", "no experts are given that it could count");
    }
}

Cost cost(const RouterTopK& op, const DeviceTraits&) {
    Cost cost = streamingCost(op.logits.bytes(), op.ids.bytes() + op.weights.bytes(),
                              static_cast<std::uint64_t>(op.logits.shape.count() * (op.ids.shape[1] + 2)), DType::F32);
    if (!op.given.empty()) {
        addCost(cost, streamingCost(op.logits.bytes() + op.ids.bytes() + op.given.bytes(),
                                    op.ids.bytes() + op.weights.bytes() + op.differing.bytes(),
                                    2 * static_cast<std::uint64_t>(op.logits.shape.count()), DType::F32));
    }
    return cost;
}

std::uint64_t scratch(const RouterTopK&, const DeviceTraits&) {
    return 0;
}

void check(const RouterTopKBackward& op) {
    check(op.forward);
    const OpCheck rule(RouterTopKBackward::kName);
    rule.require(op.forward.order != RouterOrder::SigmoidThenTopK, "forward", "its order has no softmax");
    const TensorView& logits = op.forward.logits;
    rule.shape(op.gradWeights, "gradWeights", {logits.shape[0], op.forward.ids.shape[1]});
    rule.require(op.gradWeights.dtype == DType::F32 || op.gradWeights.dtype == DType::F64, "gradWeights",
                 "neither float32 nor float64");
    rule.contiguous(op.gradWeights, "gradWeights");
    if (!op.gradProbabilities.empty()) {
        rule.shape(op.gradProbabilities, "gradProbabilities", {logits.shape[1]});
        rule.dtype(op.gradProbabilities, "gradProbabilities", DType::F32);
    }
    rule.shape(op.gradLogits, "gradLogits", {logits.shape[0], logits.shape[1]});
    rule.floating(op.gradLogits, "gradLogits");
    rule.rowsContiguous(op.gradLogits, "gradLogits");
    rule.disjoint(op.gradLogits, "gradLogits", logits, "logits");
}

Cost cost(const RouterTopKBackward& op, const DeviceTraits&) {
    return streamingCost(op.forward.logits.bytes() + op.forward.ids.bytes() + 2 * op.gradWeights.bytes(),
                         op.gradLogits.bytes(), 6 * static_cast<std::uint64_t>(op.gradLogits.shape.count()),
                         DType::F32);
}

std::uint64_t scratch(const RouterTopKBackward&, const DeviceTraits&) {
    return 0;
}

void check(const ExpertMatmul& op) {
    const OpCheck rule(ExpertMatmul::kName);
    checkWeight(rule, op.weight, "weight");
    const std::int64_t experts = op.weight.experts();
    rule.require(op.weight.shape.rank() == 3, "weight", "a single matrix where a stack is needed");
    rule.require(experts <= kMaxExperts, "weight", "more than 4096 experts");
    rule.shape(op.ids, "ids", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    const std::int64_t pairs = op.ids.shape.count();
    rule.shape(op.x, "x", {op.xPerToken ? op.ids.shape[0] : pairs, op.weight.inFeatures()});
    rule.floating(op.x, "x");
    rule.rowsContiguous(op.x, "x");
    if (!op.bias.empty()) {
        rule.shape(op.bias, "bias", {experts, op.weight.outFeatures()});
        rule.floating(op.bias, "bias");
        rule.rowsContiguous(op.bias, "bias");
    }
    rule.shape(op.out, "out", {pairs, op.weight.outFeatures()});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.x, "x");
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

namespace {

/// The share of a dense product's rate that grouped products with this stack reach.
double expertShare(const WeightView& weight, const DeviceTraits& traits) {
    const bool packedOnGpu = weight.quantized() && traits.features.kernelScratch;
    return packedOnGpu ? packedFormat(weight.format).expertShare : traits.expertShareDense;
}

} // namespace

Cost cost(const ExpertMatmul& op, const DeviceTraits& traits) {
    const auto pairs = static_cast<std::uint64_t>(op.ids.shape.count());
    const auto experts = static_cast<std::uint64_t>(std::max<std::int64_t>(1, op.weight.experts()));
    const std::uint64_t touched = std::min(experts, pairs);
    Cost cost;
    cost.bytesRead = op.x.bytes() + op.ids.bytes() + op.weight.bytes() / experts * touched +
                     (op.bias.empty() ? 0 : op.bias.bytes() / experts * touched);
    cost.bytesWritten = op.out.bytes();
    cost.flops = 2 * pairs * static_cast<std::uint64_t>(op.weight.outFeatures() * op.weight.inFeatures());
    cost.computeType = op.x.dtype;
    if (ExpertMatmulTiles::gathers(op)) {
        cost.share = expertShare(op.weight, traits);
    }
    return cost;
}

std::uint64_t scratch(const ExpertMatmul& op, const DeviceTraits& traits) {
    // Plans size their pieces without traits: what every GPU form needs is always there.
    const std::uint64_t least =
        std::max(ExpertScratch(op, ScratchLayout()).bytes, ExpertMatmulTiles(op, false, ScratchLayout()).bytes);
    const bool gather = traits.features.kernelScratch && ExpertMatmulTiles::gathers(op);
    return gather ? std::max(least, ExpertMatmulTiles(op, true, ScratchLayout()).bytes) : least;
}

void check(const MoeCombine& op) {
    const OpCheck rule(MoeCombine::kName);
    rule.shape(op.x, "x", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.x, "x");
    rule.rowsContiguous(op.x, "x");
    rule.shape(op.out, "out", {OpCheck::kAny, op.x.shape[1]});
    const std::int64_t tokens = op.out.shape[0];
    const std::int64_t pairs = op.x.shape[0];
    rule.require(tokens > 0 ? pairs % tokens == 0 : pairs == 0, "x", "not as many rows for each token");
    if (!op.weights.empty()) {
        rule.shape(op.weights, "weights", {tokens, tokens > 0 ? pairs / tokens : OpCheck::kAny});
        rule.dtype(op.weights, "weights", DType::F32);
        rule.contiguous(op.weights, "weights");
    }
    if (!op.places.empty()) {
        rule.shape(op.places, "places", {pairs});
        rule.dtype(op.places, "places", DType::I32);
        rule.contiguous(op.places, "places");
    }
    if (!op.ids.empty()) {
        rule.shape(op.ids, "ids", {tokens, tokens > 0 ? pairs / tokens : OpCheck::kAny});
        rule.dtype(op.ids, "ids", DType::I32);
        rule.contiguous(op.ids, "ids");
    }
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.x, "x");
    if (!op.residual.empty()) {
        rule.shape(op.residual, "residual", {tokens, op.x.shape[1]});
        rule.floating(op.residual, "residual");
        rule.rowsContiguous(op.residual, "residual");
        rule.sameOrDisjoint(op.out, "out", op.residual, "residual");
    }
}

Cost cost(const MoeCombine& op, const DeviceTraits&) {
    const std::uint64_t residual = op.residual.empty() ? 0 : op.residual.bytes();
    const std::uint64_t weights = op.weights.empty() ? 0 : op.weights.bytes();
    return streamingCost(op.x.bytes() + weights + residual, op.out.bytes(),
                         2 * static_cast<std::uint64_t>(op.x.shape.count()), op.out.dtype);
}

std::uint64_t scratch(const MoeCombine&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
