// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/broadcast.h"

#include "kernels/ops/comm/comm_parts.h"

namespace vitrine::kernels {

namespace {

void checkRoot(const OpCheck& rule, const Communicator* communicator, int root) {
    rule.require(root >= 0 && root < communicator->size(), "root", "there is no such rank");
}

} // namespace

void check(const Broadcast& op) {
    const OpCheck rule(Broadcast::kName);
    checkCollective(rule, op.communicator, op.x, "x");
    checkRoot(rule, op.communicator, op.root);
}

/// A chain of ranks: each passes on what it gets.
Cost cost(const Broadcast& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, op.x.bytes(), op.x.bytes(), op.communicator->size() > 1 ? op.x.bytes() : 0);
}

std::uint64_t scratch(const Broadcast&, const DeviceTraits&) {
    return 0;
}

void execute(MetaContext& context, const Broadcast& op) {
    joinRanks(context, Broadcast::kName, *op.communicator);
}

Reduce gradientOf(const Broadcast& op, const TensorView& gradOut, const TensorView& gradX) {
    return {gradOut, gradX, op.root, op.communicator, {}};
}

void check(const Reduce& op) {
    const OpCheck rule(Reduce::kName);
    rule.floating(op.x, "x");
    checkCollective(rule, op.communicator, op.x, "x");
    checkCollective(rule, op.communicator, op.out, "out");
    checkRoot(rule, op.communicator, op.root);
    rule.dtype(op.out, "out", op.x.dtype);
    rule.require(op.out.shape == op.x.shape, "out", "its shape is not that of x");
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
}

Cost cost(const Reduce& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, op.x.bytes(), op.x.bytes(), op.communicator->size() > 1 ? op.x.bytes() : 0);
}

/// The root has a piece from each rank.
std::uint64_t scratch(const Reduce& op, const DeviceTraits& traits) {
    const bool sums = sumsInScratch(traits) && op.communicator->rank() == op.root;
    return sums ? op.x.bytes() * static_cast<std::uint64_t>(op.communicator->size()) : 0;
}

void execute(MetaContext& context, const Reduce& op) {
    joinRanks(context, Reduce::kName, *op.communicator);
}

} // namespace vitrine::kernels
