// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/all_gather.h"

#include "kernels/ops/comm/comm_parts.h"

namespace vitrine::kernels {

void check(const AllGather& op) {
    checkPart(OpCheck(AllGather::kName), op.communicator, op.x, "x", op.out, "out", op.axis);
}

Cost cost(const AllGather& op, const DeviceTraits&) {
    const auto others = static_cast<std::uint64_t>(op.communicator->size() - 1);
    return collectiveCost(*op.communicator, op.x.bytes(), op.out.bytes(), op.x.bytes() * others);
}

/// Columns come rank by rank, and are put side by side then.
std::uint64_t scratch(const AllGather& op, const DeviceTraits& traits) {
    return op.axis == 0 || !sumsInScratch(traits) ? 0 : op.out.bytes();
}

void execute(MetaContext& context, const AllGather& op) {
    joinRanks(context, AllGather::kName, *op.communicator);
}

ReduceScatter gradientOf(const AllGather& op, const TensorView& gradOut, const TensorView& gradX) {
    return {gradOut, gradX, op.axis, op.communicator, {}};
}

void check(const ReduceScatter& op) {
    const OpCheck rule(ReduceScatter::kName);
    rule.floating(op.x, "x");
    checkPart(rule, op.communicator, op.out, "out", op.x, "x", op.axis);
}

Cost cost(const ReduceScatter& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, op.x.bytes(), op.out.bytes(),
                          bytesOfOthers(op.x.bytes(), *op.communicator));
}

/// This rank's part from each rank; columns that are sent are put together first.
std::uint64_t scratch(const ReduceScatter& op, const DeviceTraits& traits) {
    if (!sumsInScratch(traits)) {
        return 0;
    }
    const std::uint64_t parts = op.out.bytes() * static_cast<std::uint64_t>(op.communicator->size());
    return op.axis == 0 ? parts : parts + op.x.bytes();
}

void execute(MetaContext& context, const ReduceScatter& op) {
    joinRanks(context, ReduceScatter::kName, *op.communicator);
}

AllGather gradientOf(const ReduceScatter& op, const TensorView& gradOut, const TensorView& gradX) {
    return {gradOut, gradX, op.axis, op.communicator, {}};
}

} // namespace vitrine::kernels
