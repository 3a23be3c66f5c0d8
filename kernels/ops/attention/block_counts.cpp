// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/block_counts.h"

#include <algorithm>

#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

namespace {

std::int64_t areaOf(const BlockMaskShape& shape) {
    return std::min(shape.queryBlock, shape.queries) * std::min(shape.keyBlock, shape.keys);
}

} // namespace

void check(const BlockCounts& op) {
    constexpr std::int64_t kMostElements = std::int64_t{1} << 30;
    const OpCheck rule(BlockCounts::kName);
    rule.require(!op.mask.empty() && op.mask.program->isMask(), "mask", "it is no mask");
    rule.shape(op.places, "places", {OpCheck::kAny, 4});
    rule.dtype(op.places, "places", DType::I32);
    rule.contiguous(op.places, "places");
    rule.shape(op.counts, "counts", {op.places.shape[0]});
    rule.dtype(op.counts, "counts", DType::I32);
    rule.contiguous(op.counts, "counts");
    rule.disjoint(op.counts, "counts", op.places, "places");
    const BlockMaskShape& shape = op.shape;
    const bool positive = shape.queries > 0 && shape.keys > 0 && shape.queryBlock > 0 && shape.keyBlock > 0;
    rule.require(positive && areaOf(shape) <= kMostElements, "shape", "blocks of 1 to 2^30 elements are needed");
}

Cost cost(const BlockCounts& op, const DeviceTraits&) {
    Cost cost;
    cost.bytesRead = op.places.bytes();
    cost.bytesWritten = op.counts.bytes();
    cost.flops = static_cast<std::uint64_t>(op.counts.shape.count()) * static_cast<std::uint64_t>(areaOf(op.shape)) *
                 op.mask.program->nodes.size();
    cost.share = 1.0 / 16; // of the rate of dense products: these are plain integer operations
    return cost;
}

std::uint64_t scratch(const BlockCounts&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
