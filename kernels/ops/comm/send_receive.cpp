// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/send_receive.h"

#include "kernels/context/meta_context.h"
#include "kernels/ops/comm/comm_parts.h"

namespace vitrine::kernels {

namespace {

void checkOther(const OpCheck& rule, const Communicator* communicator, int other, std::string_view field) {
    rule.require(other >= 0 && other < communicator->size() && other != communicator->rank(), field,
                 "it is not another rank");
}

} // namespace

void check(const Send& op) {
    const OpCheck rule(Send::kName);
    checkCollective(rule, op.communicator, op.x, "x");
    checkOther(rule, op.communicator, op.to, "to");
}

Cost cost(const Send& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, op.x.bytes(), 0, op.x.bytes());
}

std::uint64_t scratch(const Send&, const DeviceTraits&) {
    return 0;
}

void execute(MetaContext& context, const Send& op) {
    const base::TimeNs end = context.opsEnd();
    op.communicator->send(Send::kName, op.to, {reinterpret_cast<const std::byte*>(&end), sizeof(end)});
}

Receive gradientOf(const Send& op, const TensorView& gradX) {
    return {gradX, op.to, op.communicator};
}

void check(const Receive& op) {
    const OpCheck rule(Receive::kName);
    checkCollective(rule, op.communicator, op.out, "out");
    checkOther(rule, op.communicator, op.from, "from");
}

Cost cost(const Receive& op, const DeviceTraits&) {
    return collectiveCost(*op.communicator, 0, op.out.bytes(), op.out.bytes());
}

std::uint64_t scratch(const Receive&, const DeviceTraits&) {
    return 0;
}

/// Begins when the sender does at the earliest, and takes as long as it.
void execute(MetaContext& context, const Receive& op) {
    base::TimeNs begin = context.opsEnd();
    op.communicator->receive(Receive::kName, op.from, {reinterpret_cast<std::byte*>(&begin), sizeof(begin)});
    context.holdOps(begin);
}

Send gradientOf(const Receive& op, const TensorView& gradOut) {
    return {gradOut, op.from, op.communicator};
}

} // namespace vitrine::kernels
