// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/all_gather.h"

#include <cstring>

#include "kernels/ops/comm/rank_sums_cpu.h"

namespace vitrine::kernels {

namespace {

enum class Direction : std::uint8_t { Together, Apart };

/// Between a matrix and the blocks of columns that ranks have, one block after the other.
void moveColumns(const TensorView& matrix, std::byte* blocks, int ranks, Direction direction) {
    const std::int64_t rows = matrix.shape[0], columns = matrix.shape[1];
    const std::uint64_t element = bytesOf(matrix.dtype, 1), rowBytes = element * static_cast<std::uint64_t>(columns);
    for (int rank = 0; rank < ranks; ++rank) {
        const RankShare share = rankShare(columns, rank, ranks);
        const std::uint64_t bytes = element * static_cast<std::uint64_t>(share.count());
        std::byte* at = matrix.as<std::byte>() + element * static_cast<std::uint64_t>(share.begin);
        for (std::int64_t row = 0; row < rows; ++row, at += rowBytes, blocks += bytes) {
            std::memcpy(direction == Direction::Together ? at : blocks, direction == Direction::Together ? blocks : at,
                        bytes);
        }
    }
}

/// Bytes of an element of the divided dimension: a row, or a column.
std::uint64_t sliceBytes(const TensorView& whole, int axis) {
    return whole.shape[axis] == 0 ? 0 : whole.bytes() / static_cast<std::uint64_t>(whole.shape[axis]);
}

} // namespace

void execute(CpuContext& /*context*/, const AllGather& op) {
    const int ranks = op.communicator->size();
    void* const blocks = op.axis == 0 ? op.out.data : op.scratch.data;
    const std::vector<SentBytes> toAll(static_cast<std::size_t>(ranks),
                                       SentBytes{op.x.as<const std::byte>(), op.x.bytes()});
    op.communicator->exchange(AllGather::kName, toAll,
                              piecesToReceive(blocks, op.out.shape[op.axis], sliceBytes(op.out, op.axis), ranks));
    if (op.axis == 1) {
        moveColumns(op.out, op.scratch.as<std::byte>(), ranks, Direction::Together);
    }
}

void execute(CpuContext& context, const ReduceScatter& op) {
    const int ranks = op.communicator->size();
    const void* blocks = op.x.data;
    std::byte* room = op.scratch.as<std::byte>();
    if (op.axis == 1) {
        moveColumns(op.x, room, ranks, Direction::Apart);
        blocks = room;
        room += op.x.bytes();
    }
    std::vector<ReceivedBytes> receives;
    std::vector<const std::byte*> parts;
    for (int from = 0; from < ranks; ++from, room += op.out.bytes()) {
        receives.push_back({room, op.out.bytes()});
        parts.push_back(room);
    }
    op.communicator->exchange(ReduceScatter::kName,
                              piecesToSend(blocks, op.x.shape[op.axis], sliceBytes(op.x, op.axis), ranks), receives);
    sumParts(context, op.x.dtype, parts, op.out.shape.count(), op.out.data);
}

} // namespace vitrine::kernels
