// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/policy_loss.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/loss/logits_check.h"

namespace vitrine::kernels {

namespace {

/// A field that has a value a token.
struct TokenField {
    const TensorView& tensor;
    std::string_view name;
};

void checkSingles(const OpCheck& rule, const TokenField& field, std::int64_t rows) {
    rule.shape(field.tensor, field.name, {rows});
    rule.dtype(field.tensor, field.name, DType::F32);
    rule.contiguous(field.tensor, field.name);
}

void checkLikeLogProbs(const OpCheck& rule, const TokenField& field, const TensorView& logProbs) {
    rule.shape(field.tensor, field.name, {logProbs.shape[0]});
    rule.dtype(field.tensor, field.name, logProbs.dtype);
    rule.contiguous(field.tensor, field.name);
}

void checkNumbers(const OpCheck& rule, const PolicyLoss& op) {
    rule.require(op.clipLow >= 0, "clipLow", "it is negative");
    rule.require(op.clipHigh >= 0, "clipHigh", "it is negative");
    rule.require(op.klCoefficient >= 0, "klCoefficient", "it is negative");
    rule.require(op.importanceCap >= 0, "importanceCap", "it is negative");
}

} // namespace

void check(const PolicyLoss& op) {
    const OpCheck rule(PolicyLoss::kName);
    rule.shape(op.logProbs, "logProbs", {OpCheck::kAny});
    checkLossValues(rule, op.logProbs, "logProbs");
    const std::int64_t rows = op.logProbs.shape[0];
    rule.shape(op.targets, "targets", {rows});
    rule.dtype(op.targets, "targets", DType::I32);
    rule.contiguous(op.targets, "targets");
    checkSingles(rule, {op.advantages, "advantages"}, rows);
    checkSingles(rule, {op.weights, "weights"}, rows);
    if (!op.old.empty()) {
        rule.shape(op.old, "old", {rows});
        checkLossValues(rule, op.old, "old");
    }
    for (const TokenField& field : {TokenField{op.rollout, "rollout"}, {op.reference, "reference"}}) {
        if (!field.tensor.empty()) {
            checkSingles(rule, field, rows);
        }
    }
    if (!op.entropies.empty()) {
        checkLikeLogProbs(rule, {op.entropies, "entropies"}, op.logProbs);
    }
    checkNumbers(rule, op);
    rule.shape(op.sums, "sums", {PolicySums::kCount});
    rule.dtype(op.sums, "sums", DType::F64);
    rule.contiguous(op.sums, "sums");
    if (!op.gradLogProbs.empty()) {
        checkLikeLogProbs(rule, {op.gradLogProbs, "gradLogProbs"}, op.logProbs);
        rule.disjoint(op.gradLogProbs, "gradLogProbs", op.sums, "sums");
    }
    for (const TokenField& field : {TokenField{op.logProbs, "logProbs"},
                                    {op.targets, "targets"},
                                    {op.advantages, "advantages"},
                                    {op.weights, "weights"},
                                    {op.old, "old"},
                                    {op.rollout, "rollout"},
                                    {op.reference, "reference"},
                                    {op.entropies, "entropies"}}) {
        if (field.tensor.empty()) {
            continue;
        }
        rule.disjoint(op.sums, "sums", field.tensor, field.name);
        if (!op.gradLogProbs.empty()) {
            rule.disjoint(op.gradLogProbs, "gradLogProbs", field.tensor, field.name);
        }
    }
}

Cost cost(const PolicyLoss& op, const DeviceTraits&) {
    constexpr std::uint64_t kFlopsOfToken = 100;
    std::uint64_t read = op.sums.bytes();
    for (const TensorView* tensor :
         {&op.logProbs, &op.targets, &op.advantages, &op.weights, &op.old, &op.rollout, &op.reference, &op.entropies}) {
        read += tensor->empty() ? 0 : tensor->bytes();
    }
    return streamingCost(read, op.sums.bytes() + (op.gradLogProbs.empty() ? 0 : op.gradLogProbs.bytes()),
                         kFlopsOfToken * static_cast<std::uint64_t>(op.logProbs.shape.count()), DType::F32);
}

std::uint64_t scratch(const PolicyLoss&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
