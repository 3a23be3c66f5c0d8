// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/loss/logits_check.h"

namespace vitrine::kernels {

void check(const CrossEntropy& op) {
    const OpCheck rule(CrossEntropy::kName);
    checkLogits(rule, op.logits, op.targets);
    rule.require(op.softCap >= 0, "softCap", "it is negative");
    rule.shape(op.losses, "losses", {op.logits.shape[0]});
    checkLossValues(rule, op.losses, "losses");
    rule.disjoint(op.losses, "losses", op.logits, "logits");
    rule.disjoint(op.losses, "losses", op.targets, "targets");
    if (!op.gradLogits.empty()) {
        checkGradLogits(rule, op.gradLogits, op.logits);
        rule.disjoint(op.gradLogits, "gradLogits", op.targets, "targets");
        rule.disjoint(op.gradLogits, "gradLogits", op.losses, "losses");
    }
}

/// The gradient reads the logits again, mostly from a cache: once counts.
Cost cost(const CrossEntropy& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.logits.shape.count());
    const bool gradient = !op.gradLogits.empty();
    return streamingCost(op.logits.bytes() + op.targets.bytes(),
                         op.losses.bytes() + (gradient ? op.gradLogits.bytes() : 0), (gradient ? 8 : 4) * elements,
                         op.logits.dtype);
}

std::uint64_t scratch(const CrossEntropy&, const DeviceTraits&) {
    return 0;
}

void check(const SumLosses& op) {
    const OpCheck rule(SumLosses::kName);
    rule.shape(op.losses, "losses", {OpCheck::kAny});
    checkLossValues(rule, op.losses, "losses");
    rule.shape(op.out, "out", {1});
    checkLossValues(rule, op.out, "out");
    rule.disjoint(op.out, "out", op.losses, "losses");
}

Cost cost(const SumLosses& op, const DeviceTraits&) {
    return streamingCost(op.losses.bytes() + (op.accumulate ? op.out.bytes() : 0), op.out.bytes(),
                         static_cast<std::uint64_t>(op.losses.shape.count()), DType::F32);
}

std::uint64_t scratch(const SumLosses&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
