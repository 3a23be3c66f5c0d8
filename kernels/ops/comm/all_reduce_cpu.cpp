// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/all_reduce.h"

#include "kernels/ops/comm/rank_sums_cpu.h"

namespace vitrine::kernels {

/// Each rank adds up one piece and sends the sum to all.
void execute(CpuContext& context, const AllReduce& op) {
    const int ranks = op.communicator->size(), rank = op.communicator->rank();
    const std::int64_t count = op.x.shape.count();
    const std::uint64_t bytes = bytesOf(op.x.dtype, 1);
    const RankShare mine = rankShare(count, rank, ranks);
    const std::uint64_t mineBytes = static_cast<std::uint64_t>(mine.count()) * bytes;
    std::vector<ReceivedBytes> receives;
    std::vector<const std::byte*> parts;
    for (int from = 0; from < ranks; ++from) {
        std::byte* const room = op.scratch.as<std::byte>() + static_cast<std::uint64_t>(from) * mineBytes;
        receives.push_back({room, mineBytes});
        parts.push_back(room);
    }
    op.communicator->exchange(AllReduce::kName, piecesToSend(op.x.data, count, bytes, ranks), receives);
    std::byte* const sum = op.out.as<std::byte>() + static_cast<std::uint64_t>(mine.begin) * bytes;
    sumParts(context, op.x.dtype, parts, mine.count(), sum);
    const std::vector<SentBytes> toAll(static_cast<std::size_t>(ranks), SentBytes{sum, mineBytes});
    op.communicator->exchange(AllReduce::kName, toAll, piecesToReceive(op.out.data, count, bytes, ranks));
}

} // namespace vitrine::kernels
