// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Ranks on CUDA devices cannot reach each other yet, so a run of several ranks is refused before its first op.

#include "kernels/ops/comm/all_gather.h"
#include "kernels/ops/comm/all_reduce.h"
#include "kernels/ops/comm/all_to_all.h"
#include "kernels/ops/comm/broadcast.h"
#include "kernels/ops/comm/finish_block.h"
#include "kernels/ops/comm/send_receive.h"

namespace vitrine::kernels {

void execute(CudaContext& /*context*/, const AllReduce& /*op*/) {
    throwNoCuda(AllReduce::kName);
}

void execute(CudaContext& /*context*/, const AllGather& /*op*/) {
    throwNoCuda(AllGather::kName);
}

void execute(CudaContext& /*context*/, const ReduceScatter& /*op*/) {
    throwNoCuda(ReduceScatter::kName);
}

void execute(CudaContext& /*context*/, const AllToAll& /*op*/) {
    throwNoCuda(AllToAll::kName);
}

void execute(CudaContext& /*context*/, const Broadcast& /*op*/) {
    throwNoCuda(Broadcast::kName);
}

void execute(CudaContext& /*context*/, const Reduce& /*op*/) {
    throwNoCuda(Reduce::kName);
}

void execute(CudaContext& /*context*/, const Send& /*op*/) {
    throwNoCuda(Send::kName);
}

void execute(CudaContext& /*context*/, const Receive& /*op*/) {
    throwNoCuda(Receive::kName);
}

void execute(CudaContext& /*context*/, const FinishBlock& /*op*/) {
    throwNoCuda(FinishBlock::kName);
}

} // namespace vitrine::kernels
