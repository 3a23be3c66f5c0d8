// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/comm/all_to_all.h"

#include "kernels/ops/comm/rank_sums_cpu.h"

namespace vitrine::kernels {

void execute(CpuContext& /*context*/, const AllToAll& op) {
    const int ranks = op.communicator->size();
    const std::uint64_t block = op.x.bytes() / static_cast<std::uint64_t>(ranks);
    op.communicator->exchange(AllToAll::kName, piecesToSend(op.x.data, ranks, block, ranks),
                              piecesToReceive(op.out.data, ranks, block, ranks));
}

} // namespace vitrine::kernels
