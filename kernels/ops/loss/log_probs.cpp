// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/log_probs.h"

#include <initializer_list>
#include <utility>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/loss/logits_check.h"

namespace vitrine::kernels {

namespace {

template <class Op> void checkValueOfLogits(const OpCheck& rule, const Op& op) {
    checkLogits(rule, op.logits, op.targets);
    rule.require(op.softCap >= 0, "softCap", "it is negative");
    rule.require(op.inverseTemperature > 0, "inverseTemperature", "it is not positive");
}

void checkOutput(const OpCheck& rule, const LogProbs& op, const TensorView& output, std::string_view field) {
    rule.shape(output, field, {op.logits.shape[0]});
    checkLossValues(rule, output, field);
    rule.require(output.dtype == op.logProbs.dtype, field, "its dtype is not that of logProbs");
    rule.disjoint(output, field, op.logits, "logits");
    rule.disjoint(output, field, op.targets, "targets");
}

} // namespace

void check(const LogProbs& op) {
    const OpCheck rule(LogProbs::kName);
    checkValueOfLogits(rule, op);
    checkOutput(rule, op, op.logProbs, "logProbs");
    if (!op.entropies.empty()) {
        checkOutput(rule, op, op.entropies, "entropies");
        rule.disjoint(op.entropies, "entropies", op.logProbs, "logProbs");
    }
    if (!op.lse.empty()) {
        checkOutput(rule, op, op.lse, "lse");
        rule.disjoint(op.lse, "lse", op.logProbs, "logProbs");
        if (!op.entropies.empty()) {
            rule.disjoint(op.lse, "lse", op.entropies, "entropies");
        }
    }
}

Cost cost(const LogProbs& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.logits.shape.count());
    std::uint64_t written = op.logProbs.bytes();
    for (const TensorView* output : {&op.entropies, &op.lse}) {
        written += output->empty() ? 0 : output->bytes();
    }
    return streamingCost(op.logits.bytes() + op.targets.bytes(), written, (op.entropies.empty() ? 4 : 6) * elements,
                         op.logits.dtype);
}

std::uint64_t scratch(const LogProbs&, const DeviceTraits&) {
    return 0;
}

void check(const LogProbsBackward& op) {
    const OpCheck rule(LogProbsBackward::kName);
    checkValueOfLogits(rule, op);
    checkGradLogits(rule, op.gradLogits, op.logits);
    rule.disjoint(op.gradLogits, "gradLogits", op.targets, "targets");
    for (const auto& [tensor, field] :
         {std::pair<const TensorView&, std::string_view>{op.lse, "lse"}, {op.gradLogProbs, "gradLogProbs"}}) {
        rule.shape(tensor, field, {op.logits.shape[0]});
        checkLossValues(rule, tensor, field);
        rule.disjoint(op.gradLogits, "gradLogits", tensor, field);
    }
}

Cost cost(const LogProbsBackward& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.logits.shape.count());
    return streamingCost(op.logits.bytes() + op.targets.bytes() + op.lse.bytes() + op.gradLogProbs.bytes(),
                         op.gradLogits.bytes(), 4 * elements, op.logits.dtype);
}

std::uint64_t scratch(const LogProbsBackward&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
