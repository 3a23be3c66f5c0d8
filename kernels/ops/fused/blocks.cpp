// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/fused/block_primitives.h"
#include "kernels/ops/fused/expert_mlp_tiles.h"

namespace vitrine::kernels {

namespace {

void matrix(const OpCheck& rule, const TensorView& x, std::string_view field) {
    rule.shape(x, field, {OpCheck::kAny, OpCheck::kAny});
    rule.floating(x, field);
    rule.rowsContiguous(x, field);
}

} // namespace

void check(const QkvProject& op) {
    const OpCheck rule(QkvProject::kName);
    matrix(rule, op.x, "x");
    const std::int64_t tokens = op.x.shape[0];
    rule.shape(op.outQ, "outQ", {tokens, OpCheck::kAny, OpCheck::kAny});
    rule.shape(op.outK, "outK", {tokens, OpCheck::kAny, op.outQ.shape[2]});
    rule.shape(op.outV, "outV", {tokens, op.outK.shape[1], op.outQ.shape[2]});
    if (!op.qNorm.weight.empty()) {
        rule.contiguous(op.outQ, "outQ");
    }
    if (!op.kNorm.weight.empty()) {
        rule.contiguous(op.outK, "outK");
    }
    checkPrimitives<QkvProjectPrimitives>(rule, op);
}

Cost cost(const QkvProject& op, const DeviceTraits& traits) {
    Cost cost = primitiveCost<QkvProjectPrimitives>(op, traits);
    cost.rateClass = weightRateClass(op.q.weight.format);
    return cost;
}

std::uint64_t scratch(const QkvProject& op, const DeviceTraits& traits) {
    return primitiveBytes<QkvProjectPrimitives>(op, traits);
}

void check(const OutProject& op) {
    const OpCheck rule(OutProject::kName);
    matrix(rule, op.x, "x");
    if (!op.residual.empty()) {
        matrix(rule, op.residual, "residual");
    }
    rule.require(!op.residual.empty() || op.postNorm.weight.empty(), "residual", "there is none beside a second norm");
    checkPrimitives<OutProjectPrimitives>(rule, op);
}

Cost cost(const OutProject& op, const DeviceTraits& traits) {
    Cost cost = primitiveCost<OutProjectPrimitives>(op, traits);
    cost.rateClass = weightRateClass(op.o.weight.format);
    return cost;
}

std::uint64_t scratch(const OutProject& op, const DeviceTraits& traits) {
    return primitiveBytes<OutProjectPrimitives>(op, traits);
}

void check(const DenseMlp& op) {
    const OpCheck rule(DenseMlp::kName);
    matrix(rule, op.x, "x");
    rule.require(op.gate.weight.outFeatures() == op.up.weight.outFeatures(), "up", "its width differs from gate's");
    rule.require(op.residual.empty() || op.postNorm.weight.empty(), "residual", "given beside a second norm");
    rule.require(!op.partial || (op.residual.empty() && op.postNorm.weight.empty() && !op.out.empty()), "partial",
                 "given beside a residual or a second norm, or without an output");
    checkPrimitives<DenseMlpPrimitives>(rule, op);
}

Cost cost(const DenseMlp& op, const DeviceTraits& traits) {
    Cost cost = primitiveCost<DenseMlpPrimitives>(op, traits);
    cost.rateClass = weightRateClass(op.up.weight.format);
    return cost;
}

std::uint64_t scratch(const DenseMlp& op, const DeviceTraits& traits) {
    return primitiveBytes<DenseMlpPrimitives>(op, traits);
}

void check(const Route& op) {
    const OpCheck rule(Route::kName);
    matrix(rule, op.x, "x");
    checkPrimitives<RoutePrimitives>(rule, op);
}

Cost cost(const Route& op, const DeviceTraits& traits) {
    return primitiveCost<RoutePrimitives>(op, traits);
}

std::uint64_t scratch(const Route& op, const DeviceTraits& traits) {
    return primitiveBytes<RoutePrimitives>(op, traits);
}

void check(const ExpertMlp& op) {
    const OpCheck rule(ExpertMlp::kName);
    matrix(rule, op.x, "x");
    rule.shape(op.ids, "ids", {op.x.shape[0], OpCheck::kAny});
    if (op.grouped()) {
        checkPrimitives<GroupedExpertPrimitives>(rule, op);
    } else {
        checkPrimitives<ExpertMlpPrimitives>(rule, op);
    }
}

namespace {

/// As many choices of each token as are of the experts here when routers choose evenly; one at least.
ExpertMlp withOwnChoices(const ExpertMlp& op) {
    ExpertMlp own = op;
    const std::int64_t k = op.ids.shape[1];
    const std::int64_t experts = op.gateUp.weight.experts();
    const std::int64_t choices = std::max<std::int64_t>(1, (k * experts + op.allExperts - 1) / op.allExperts);
    own.ids.shape = own.weights.shape = Shape{op.ids.shape[0], choices};
    own.allExperts = 0;
    return own;
}

} // namespace

Cost cost(const ExpertMlp& op, const DeviceTraits& traits) {
    if (op.allExperts > 0) {
        return cost(withOwnChoices(op), traits);
    }
    Cost cost = op.grouped() ? primitiveCost<GroupedExpertPrimitives>(op, traits)
                             : primitiveCost<ExpertMlpPrimitives>(op, traits);
    cost.rateClass = expertRateClass(op.gateUp.weight.format, false);
    return cost;
}

std::uint64_t scratch(const ExpertMlp& op, const DeviceTraits& traits) {
    if (op.grouped()) {
        return primitiveBytes<GroupedExpertPrimitives>(op, traits);
    }
    const std::uint64_t primitives = primitiveBytes<ExpertMlpPrimitives>(op, traits);
    const bool tiles = traits.features.kernelScratch && ExpertMlpTiles::fits(op);
    return tiles ? std::max(primitives, ExpertMlpTiles(op, ScratchLayout()).bytes) : primitives;
}

void check(const LmHead& op) {
    const OpCheck rule(LmHead::kName);
    matrix(rule, op.x, "x");
    rule.dtype(op.logits, "logits", DType::F32);
    rule.require(op.softCap >= 0, "softCap", "it is negative");
    checkPrimitives<LmHeadPrimitives>(rule, op);
}

Cost cost(const LmHead& op, const DeviceTraits& traits) {
    return primitiveCost<LmHeadPrimitives>(op, traits);
}

std::uint64_t scratch(const LmHead& op, const DeviceTraits& traits) {
    return primitiveBytes<LmHeadPrimitives>(op, traits);
}

} // namespace vitrine::kernels
