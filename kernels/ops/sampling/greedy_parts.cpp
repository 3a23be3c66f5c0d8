// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/sampling/greedy_parts.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const BestOfPart& op) {
    const OpCheck rule(BestOfPart::kName);
    rule.shape(op.logits, "logits", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(op.logits, "logits", DType::F32);
    rule.rowsContiguous(op.logits, "logits");
    rule.require(op.logits.shape[1] > 0, "logits", "the part has no tokens");
    rule.require(op.firstId >= 0 && op.firstId + op.logits.shape[1] <= (std::int64_t{1} << 24), "firstId",
                 "float32 cannot hold the ids");
    rule.shape(op.best, "best", {op.logits.shape[0], kBestOfPart});
    rule.dtype(op.best, "best", DType::F32);
    rule.contiguous(op.best, "best");
}

Cost cost(const BestOfPart& op, const DeviceTraits&) {
    return streamingCost(op.logits.bytes(), op.best.bytes(), 4 * static_cast<std::uint64_t>(op.logits.shape.count()),
                         DType::F32);
}

std::uint64_t scratch(const BestOfPart&, const DeviceTraits&) {
    return 0;
}

void check(const BestOfParts& op) {
    const OpCheck rule(BestOfParts::kName);
    rule.shape(op.best, "best", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(op.best, "best", DType::F32);
    rule.contiguous(op.best, "best");
    rule.require(op.best.shape[1] > 0 && op.best.shape[1] % kBestOfPart == 0, "best", "it has no whole parts");
    rule.shape(op.ids, "ids", {op.best.shape[0]});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.shape(op.logprobs, "logprobs", {op.best.shape[0]});
    rule.dtype(op.logprobs, "logprobs", DType::F32);
}

Cost cost(const BestOfParts& op, const DeviceTraits&) {
    return streamingCost(op.best.bytes(), op.ids.bytes() + op.logprobs.bytes(),
                         2 * static_cast<std::uint64_t>(op.best.shape.count()), DType::F32);
}

std::uint64_t scratch(const BestOfParts&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
