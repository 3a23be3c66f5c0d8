// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/group_pairs.h"

#include "base/error.h"
#include "kernels/device/abi/group_pairs.h"
#include "kernels/ops/common/cuda_call.h"
#include "kernels/ops/experts/group_counts.h"

namespace vitrine::kernels {

static_assert(kGroupChunkPairs == abi::kGroupChunk);

void execute(CudaContext& context, const GroupPairs& op) {
    const std::int64_t experts = op.starts.shape[0] - 1;
    if (op.ids.shape.count() == 0) {
        context.fill(op.starts.data, 0, op.starts.bytes());
        return;
    }
    const GroupCounts scratch(op, ScratchLayout(op.scratch.data));
    if (op.scratch.empty() || op.scratch.bytes() < scratch.bytes) {
        throw base::Internal("GroupPairs: scratch: it is smaller than scratch() says");
    }
    abi::GroupPairsParams params{};
    params.ids = op.ids.as<const int>();
    params.starts = op.starts.as<int>();
    params.pairs = op.pairs.as<int>();
    params.places = op.places.as<int>();
    params.counts = scratch.counts.as<int>();
    params.count = toInt(op.ids.shape.count(), GroupPairs::kName, "ids");
    params.experts = static_cast<int>(experts);
    params.chunks = static_cast<int>(scratch.chunks);
    launchFamily(context, "group_pairs", abi::kGroupPairsAbi, params,
                 {{"experts", experts}, {"chunks", scratch.chunks}});
}

void execute(CudaContext& context, const GatherPairs& op) {
    const std::int64_t rows = op.pairs.shape[0];
    if (rows == 0 || op.x.shape[1] == 0) {
        return;
    }
    const std::uint64_t row = bytesOf(op.x.dtype, op.x.shape[1]);
    const auto apart = [](const TensorView& tensor) { return bytesOf(tensor.dtype, tensor.stride0()); };
    const auto fits = [&](std::uint64_t bytes) {
        const auto whole = [&](const TensorView& tensor) {
            return apart(tensor) % bytes == 0 && reinterpret_cast<std::uintptr_t>(tensor.data) % bytes == 0;
        };
        return row % bytes == 0 && whole(op.x) && whole(op.out);
    };
    const std::uint64_t piece = fits(16) ? 16 : fits(4) ? 4 : 2;
    abi::GatherPairsParams params{};
    params.x = op.x.data;
    params.pairs = op.pairs.as<const int>();
    params.out = op.out.data;
    params.xStride = static_cast<long long>(apart(op.x) / piece);
    params.outStride = static_cast<long long>(apart(op.out) / piece);
    params.rows = toInt(rows, GatherPairs::kName, "pairs");
    params.width = toInt(static_cast<std::int64_t>(row / piece), GatherPairs::kName, "x");
    params.pairsPerRow = static_cast<int>(rows / op.x.shape[0]);
    launchFamily(context, "gather_pairs", abi::kGatherPairsAbi, params,
                 {{"piece", static_cast<std::int64_t>(piece)}, {"rows", rows}});
}

} // namespace vitrine::kernels
