// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/group_pairs.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/experts/expert_groups.h"
#include "kernels/ops/experts/group_counts.h"

namespace vitrine::kernels {

namespace {

void checkIndices(const OpCheck& rule, const TensorView& tensor, std::string_view field, std::int64_t count) {
    rule.shape(tensor, field, {count});
    rule.dtype(tensor, field, DType::I32);
    rule.contiguous(tensor, field);
}

} // namespace

void check(const GroupPairs& op) {
    const OpCheck rule(GroupPairs::kName);
    rule.shape(op.ids, "ids", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    checkIndices(rule, op.starts, "starts", OpCheck::kAny);
    rule.require(op.starts.shape[0] >= 2 && op.starts.shape[0] <= kMaxExperts + 1, "starts",
                 "not of 1 to 4096 experts");
    checkIndices(rule, op.pairs, "pairs", op.ids.shape.count());
    checkIndices(rule, op.places, "places", op.ids.shape.count());
}

Cost cost(const GroupPairs& op, const DeviceTraits&) {
    return streamingCost(op.ids.bytes(), op.starts.bytes() + op.pairs.bytes() + op.places.bytes(), 0, DType::F32);
}

std::uint64_t scratch(const GroupPairs& op, const DeviceTraits& traits) {
    return traits.features.kernelScratch ? GroupCounts(op, ScratchLayout()).bytes : 0;
}

void check(const GatherPairs& op) {
    const OpCheck rule(GatherPairs::kName);
    rule.shape(op.x, "x", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.x, "x");
    rule.rowsContiguous(op.x, "x");
    checkIndices(rule, op.pairs, "pairs", OpCheck::kAny);
    rule.require(op.x.shape[0] > 0 ? op.pairs.shape[0] % op.x.shape[0] == 0 : op.pairs.shape[0] == 0, "pairs",
                 "not as many for each token");
    rule.shape(op.out, "out", {op.pairs.shape[0], op.x.shape[1]});
    rule.dtype(op.out, "out", op.x.dtype);
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.x, "x");
}

Cost cost(const GatherPairs& op, const DeviceTraits&) {
    return streamingCost(op.out.bytes() + op.pairs.bytes(), op.out.bytes(), 0, op.x.dtype);
}

std::uint64_t scratch(const GatherPairs&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
