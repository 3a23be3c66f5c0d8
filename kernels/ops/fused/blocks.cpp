// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/fused/blocks.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/fused/block_plans.h"
#include "kernels/ops/fused/expert_mlp_tiles.h"

namespace vitrine::kernels {

namespace {

/// For views that are only measured: a plan needs an address that is not null.
template <class Plan, class Op> std::uint64_t planBytes(const Op& op) {
    return Plan(op, ScratchLayout()).bytes;
}

template <class Plan, class Op> void checkPlan(const OpCheck& rule, const Op& op) {
    const std::uint64_t bytes = planBytes<Plan>(op);
    rule.scratch(op.scratch, bytes);
    const Plan plan(op, bytes == 0 ? ScratchLayout() : ScratchLayout(op.scratch.data));
    plan.forEach([](const auto& part) { check(part); });
}

template <class Plan, class Op> Cost planCost(const Op& op, const DeviceTraits& traits) {
    Cost sum;
    sum.launches = 0;
    sum.computeType = op.x.dtype;
    Plan(op, ScratchLayout()).forEach([&](const auto& part) { addCost(sum, cost(part, traits)); });
    return sum;
}

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
    checkPlan<QkvProjectPlan>(rule, op);
}

Cost cost(const QkvProject& op, const DeviceTraits& traits) {
    return planCost<QkvProjectPlan>(op, traits);
}

std::uint64_t scratch(const QkvProject& op, const DeviceTraits&) {
    return planBytes<QkvProjectPlan>(op);
}

void check(const OutProject& op) {
    const OpCheck rule(OutProject::kName);
    matrix(rule, op.x, "x");
    matrix(rule, op.residual, "residual");
    checkPlan<OutProjectPlan>(rule, op);
}

Cost cost(const OutProject& op, const DeviceTraits& traits) {
    return planCost<OutProjectPlan>(op, traits);
}

std::uint64_t scratch(const OutProject& op, const DeviceTraits&) {
    return planBytes<OutProjectPlan>(op);
}

void check(const DenseMlp& op) {
    const OpCheck rule(DenseMlp::kName);
    matrix(rule, op.x, "x");
    rule.require(op.gate.weight.outFeatures() == op.up.weight.outFeatures(), "up", "its width differs from gate's");
    checkPlan<DenseMlpPlan>(rule, op);
}

Cost cost(const DenseMlp& op, const DeviceTraits& traits) {
    return planCost<DenseMlpPlan>(op, traits);
}

std::uint64_t scratch(const DenseMlp& op, const DeviceTraits&) {
    return planBytes<DenseMlpPlan>(op);
}

void check(const Route& op) {
    const OpCheck rule(Route::kName);
    matrix(rule, op.x, "x");
    checkPlan<RoutePlan>(rule, op);
}

Cost cost(const Route& op, const DeviceTraits& traits) {
    return planCost<RoutePlan>(op, traits);
}

std::uint64_t scratch(const Route& op, const DeviceTraits&) {
    return planBytes<RoutePlan>(op);
}

void check(const ExpertMlp& op) {
    const OpCheck rule(ExpertMlp::kName);
    matrix(rule, op.x, "x");
    rule.shape(op.ids, "ids", {op.x.shape[0], OpCheck::kAny});
    checkPlan<ExpertMlpPlan>(rule, op);
}

Cost cost(const ExpertMlp& op, const DeviceTraits& traits) {
    return planCost<ExpertMlpPlan>(op, traits);
}

std::uint64_t scratch(const ExpertMlp& op, const DeviceTraits& traits) {
    const std::uint64_t plan = planBytes<ExpertMlpPlan>(op);
    const bool tiles = traits.features.kernelScratch && ExpertMlpTiles::fits(op);
    return tiles ? std::max(plan, ExpertMlpTiles(op, ScratchLayout()).bytes) : plan;
}

void check(const LmHead& op) {
    const OpCheck rule(LmHead::kName);
    matrix(rule, op.x, "x");
    rule.dtype(op.logits, "logits", DType::F32);
    rule.require(op.softCap >= 0, "softCap", "it is negative");
    checkPlan<LmHeadPlan>(rule, op);
}

Cost cost(const LmHead& op, const DeviceTraits& traits) {
    return planCost<LmHeadPlan>(op, traits);
}

std::uint64_t scratch(const LmHead& op, const DeviceTraits&) {
    return planBytes<LmHeadPlan>(op);
}

} // namespace vitrine::kernels
