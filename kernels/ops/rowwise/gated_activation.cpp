// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

namespace {

void checkGateUp(const OpCheck& rule, const TensorView& gateUp) {
    rule.matrix(gateUp, "gateUp", OpCheck::kAny, OpCheck::kAny);
    rule.require(gateUp.shape[1] % 2 == 0, "gateUp", "its width is odd");
}

void checkOut(const OpCheck& rule, const GatedActivation& op) {
    rule.matrix(op.out, "out", op.gateUp.shape[0], op.gateUp.shape[1] / 2);
    rule.disjoint(op.out, "out", op.gateUp, "gateUp");
}

std::uint64_t bytesOrNone(const TensorView& tensor) {
    return tensor.empty() ? 0 : tensor.bytes();
}

} // namespace

void check(const GatedActivation& op) {
    const OpCheck rule(GatedActivation::kName);
    checkGateUp(rule, op.gateUp);
    checkOut(rule, op);
}

Cost cost(const GatedActivation& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.out.shape.count());
    return streamingCost(op.gateUp.bytes(), op.out.bytes(), 8 * elements, op.out.dtype);
}

std::uint64_t scratch(const GatedActivation&, const DeviceTraits&) {
    return 0;
}

void check(const GatedActivationBackward& op) {
    const OpCheck rule(GatedActivationBackward::kName);
    const GatedActivation& forward = op.forward;
    checkGateUp(rule, forward.gateUp);
    const std::int64_t rows = forward.gateUp.shape[0];
    const std::int64_t n = forward.gateUp.shape[1] / 2;
    rule.matrix(op.gradOut, "gradOut", rows, n);
    rule.matrix(op.gradGateUp, "gradGateUp", rows, 2 * n);
    rule.sameOrDisjoint(op.gradGateUp, "gradGateUp", forward.gateUp, "gateUp");
    rule.disjoint(op.gradGateUp, "gradGateUp", op.gradOut, "gradOut");
    if (!forward.out.empty()) {
        checkOut(rule, forward);
        rule.disjoint(forward.out, "out", op.gradOut, "gradOut");
        rule.disjoint(forward.out, "out", op.gradGateUp, "gradGateUp");
    }
    if (!op.rowWeights.empty()) {
        rule.shape(op.rowWeights, "rowWeights", {rows});
        rule.dtype(op.rowWeights, "rowWeights", DType::F32);
        rule.contiguous(op.rowWeights, "rowWeights");
        rule.disjoint(op.gradGateUp, "gradGateUp", op.rowWeights, "rowWeights");
        rule.disjoint(forward.out, "out", op.rowWeights, "rowWeights");
    }
    if (!op.rowDots.empty()) {
        rule.shape(op.rowDots, "rowDots", {rows});
        rule.wideFloating(op.rowDots, "rowDots");
        rule.contiguous(op.rowDots, "rowDots");
        rule.disjoint(op.rowDots, "rowDots", forward.gateUp, "gateUp");
        rule.disjoint(op.rowDots, "rowDots", forward.out, "out");
        rule.disjoint(op.rowDots, "rowDots", op.gradOut, "gradOut");
        rule.disjoint(op.rowDots, "rowDots", op.rowWeights, "rowWeights");
        rule.disjoint(op.rowDots, "rowDots", op.gradGateUp, "gradGateUp");
    }
}

Cost cost(const GatedActivationBackward& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.gradOut.shape.count());
    return streamingCost(op.forward.gateUp.bytes() + op.gradOut.bytes() + bytesOrNone(op.rowWeights),
                         op.gradGateUp.bytes() + bytesOrNone(op.forward.out) + bytesOrNone(op.rowDots), 20 * elements,
                         op.gradGateUp.dtype);
}

std::uint64_t scratch(const GatedActivationBackward&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
