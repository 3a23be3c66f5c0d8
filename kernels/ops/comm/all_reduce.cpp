// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/all_reduce.h"

#include "kernels/ops/comm/comm_parts.h"

namespace vitrine::kernels {

void check(const AllReduce& op) {
    const OpCheck rule(AllReduce::kName);
    rule.floating(op.x, "x");
    checkCollective(rule, op.communicator, op.x, "x");
    checkCollective(rule, op.communicator, op.out, "out");
    rule.dtype(op.out, "out", op.x.dtype);
    rule.require(op.out.shape == op.x.shape, "out", "its shape is not that of x");
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
}

Cost cost(const AllReduce& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, op.x.bytes(), op.x.bytes(),
                          2 * bytesOfOthers(op.x.bytes(), *op.communicator));
}

/// One piece from each rank.
std::uint64_t scratch(const AllReduce& op, const DeviceTraits& traits) {
    if (!sumsInScratch(traits)) {
        return 0;
    }
    const int ranks = op.communicator->size();
    return bytesOf(op.x.dtype, rankShare(op.x.shape.count(), op.communicator->rank(), ranks).count() * ranks);
}

void execute(MetaContext& context, const AllReduce& op) {
    joinRanks(context, AllReduce::kName, *op.communicator);
}

AllReduce gradientOf(const AllReduce& op, const TensorView& gradOut, const TensorView& gradX) {
    return {gradOut, gradX, op.communicator, {}};
}

} // namespace vitrine::kernels
