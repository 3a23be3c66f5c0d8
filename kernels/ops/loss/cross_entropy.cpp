// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/loss/cross_entropy.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

namespace {

void checkSums(const OpCheck& rule, const TensorView& tensor, std::string_view field) {
    rule.require(tensor.dtype == DType::F32 || tensor.dtype == DType::F64, field, "dtype float32 or float64 is needed");
    rule.contiguous(tensor, field);
}

/// The gradient may take the place of the logits when no row of it reaches into logits that are still to be read.
void checkGradient(const OpCheck& rule, const CrossEntropy& op) {
    rule.shape(op.gradLogits, "gradLogits", {op.logits.shape[0], op.logits.shape[1]});
    rule.floating(op.gradLogits, "gradLogits");
    rule.rowsContiguous(op.gradLogits, "gradLogits");
    if (op.gradLogits.data != op.logits.data) {
        rule.disjoint(op.gradLogits, "gradLogits", op.logits, "logits");
        return;
    }
    rule.require(bitsOf(op.gradLogits.dtype) <= bitsOf(op.logits.dtype), "gradLogits",
                 "a dtype wider than that of logits, whose memory it takes");
    rule.require(op.logits.shape[0] <= 1 || bytesOf(op.gradLogits.dtype, op.gradLogits.stride0()) ==
                                                bytesOf(op.logits.dtype, op.logits.stride0()),
                 "gradLogits", "its rows do not begin where those of logits do, whose memory it takes");
}

} // namespace

void check(const CrossEntropy& op) {
    const OpCheck rule(CrossEntropy::kName);
    rule.shape(op.logits, "logits", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.logits, "logits");
    rule.rowsContiguous(op.logits, "logits");
    rule.require(op.logits.shape[1] > 0, "logits", "rows are empty");
    rule.shape(op.targets, "targets", {op.logits.shape[0]});
    rule.dtype(op.targets, "targets", DType::I32);
    rule.contiguous(op.targets, "targets");
    rule.require(op.softCap >= 0, "softCap", "it is negative");
    rule.shape(op.losses, "losses", {op.logits.shape[0]});
    checkSums(rule, op.losses, "losses");
    rule.disjoint(op.losses, "losses", op.logits, "logits");
    rule.disjoint(op.losses, "losses", op.targets, "targets");
    if (!op.gradLogits.empty()) {
        checkGradient(rule, op);
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
    checkSums(rule, op.losses, "losses");
    rule.shape(op.out, "out", {1});
    checkSums(rule, op.out, "out");
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
