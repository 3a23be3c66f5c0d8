// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/broadcast.h"

#include <cstring>

#include "kernels/ops/comm/rank_sums_cpu.h"

namespace vitrine::kernels {

void execute(CpuContext& /*context*/, const Broadcast& op) {
    const auto ranks = static_cast<std::size_t>(op.communicator->size());
    const bool isRoot = op.communicator->rank() == op.root;
    std::vector<SentBytes> sends(ranks);
    std::vector<ReceivedBytes> receives(ranks);
    if (isRoot) {
        sends.assign(ranks, {op.x.as<const std::byte>(), op.x.bytes()});
    }
    receives[static_cast<std::size_t>(op.root)] = {op.x.as<std::byte>(), op.x.bytes()};
    op.communicator->exchange(Broadcast::kName, sends, receives);
}

void execute(CpuContext& context, const Reduce& op) {
    const auto ranks = static_cast<std::size_t>(op.communicator->size());
    std::vector<SentBytes> sends(ranks);
    std::vector<ReceivedBytes> receives(ranks);
    std::vector<const std::byte*> parts;
    sends[static_cast<std::size_t>(op.root)] = {op.x.as<const std::byte>(), op.x.bytes()};
    const bool isRoot = op.communicator->rank() == op.root;
    if (isRoot) {
        std::byte* room = op.scratch.as<std::byte>();
        for (ReceivedBytes& each : receives) {
            each = {room, op.x.bytes()};
            parts.push_back(room);
            room += op.x.bytes();
        }
    }
    op.communicator->exchange(Reduce::kName, sends, receives);
    if (isRoot) {
        sumParts(context, op.x.dtype, parts, op.x.shape.count(), op.out.data);
    } else {
        std::memset(op.out.data, 0, op.out.bytes());
    }
}

} // namespace vitrine::kernels
