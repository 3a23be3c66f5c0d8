// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/all_to_all.h"

#include "kernels/ops/comm/comm_parts.h"

namespace vitrine::kernels {

void check(const AllToAll& op) {
    const OpCheck rule(AllToAll::kName);
    checkCollective(rule, op.communicator, op.x, "x");
    checkCollective(rule, op.communicator, op.out, "out");
    rule.dtype(op.out, "out", op.x.dtype);
    rule.require(op.out.shape == op.x.shape, "out", "its shape is not that of x");
    rule.require(op.x.shape.rank() > 0 && op.x.shape[0] == op.communicator->size(), "x",
                 "it has not one block for each rank");
    rule.disjoint(op.out, "out", op.x, "x");
}

Cost cost(const AllToAll& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, op.x.bytes(), op.out.bytes(),
                          bytesOfOthers(op.x.bytes(), *op.communicator));
}

std::uint64_t scratch(const AllToAll&, const DeviceTraits&) {
    return 0;
}

void execute(MetaContext& context, const AllToAll& op) {
    joinRanks(context, AllToAll::kName, *op.communicator);
}

AllToAll gradientOf(const AllToAll& op, const TensorView& gradOut, const TensorView& gradX) {
    return {gradOut, gradX, op.communicator};
}

} // namespace vitrine::kernels
