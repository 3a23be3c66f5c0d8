// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention.h"

#include <algorithm>

#include "kernels/ops/attention_splits.h"
#include "kernels/ops/kv_pages.h"
#include "kernels/ops/op_check.h"

namespace vitrine::kernels {

namespace {

/// Keys over all sequences that the rows may see, as far as the host knows.
std::int64_t visibleKeys(const Attention& op) {
    const std::int64_t sequences = op.cache.blockTable.shape[0];
    const std::int64_t tokens = op.q.shape[0];
    const std::int64_t kept = op.cache.totalTokens != 0
                                  ? op.cache.totalTokens
                                  : sequences * op.cache.blockTable.shape[1] * op.cache.keys.shape[1];
    const std::int64_t added = op.newK.empty() ? 0 : tokens;
    if (op.program.window == AttentionProgram::kNoWindow) {
        return kept + added;
    }
    return std::min(kept + added, sequences * op.program.window + tokens);
}

/// (row, key) pairs: each row sees its share of the keys; the rows of a causal prefill see half of each other.
double visiblePairs(const Attention& op) {
    const auto sequences = static_cast<double>(std::max<std::int64_t>(1, op.cache.blockTable.shape[0]));
    const auto tokens = static_cast<double>(op.q.shape[0]);
    const double rows = tokens / sequences;
    const double keys = static_cast<double>(visibleKeys(op)) / sequences;
    double perRow = op.program.causal ? std::max(keys - (rows - 1) / 2, 1.0) : keys;
    if (op.program.window != AttentionProgram::kNoWindow) {
        perRow = std::min(perRow, static_cast<double>(op.program.window));
    }
    return perRow * tokens;
}

} // namespace

void check(const Attention& op) {
    const OpCheck rule(Attention::kName);
    rule.shape(op.q, "q", {OpCheck::kAny, OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.q, "q");
    rule.rowsContiguous(op.q, "q");
    const std::int64_t tokens = op.q.shape[0];
    const std::int64_t heads = op.q.shape[1];
    const std::int64_t headDim = op.q.shape[2];
    rule.require(op.cache.keys.shape.rank() == 4, "cache.keys", "rank is not 4");
    const std::int64_t kvHeads = op.cache.keys.shape[2];
    rule.require(kvHeads > 0 && heads % kvHeads == 0, "q", "heads are no multiple of the cache's heads");
    rule.require(headDim > 0 && headDim <= kMaxHeadDim, "q", "headDim is outside 1 to 1024");
    checkKvView(rule, op.cache, kvHeads, headDim);
    rule.shape(op.offsets, "offsets", {op.cache.blockTable.shape[0] + 1});
    rule.dtype(op.offsets, "offsets", DType::I32);
    rule.shape(op.positions, "positions", {tokens});
    rule.dtype(op.positions, "positions", DType::I32);
    rule.require(op.newK.empty() == op.newV.empty(), "newK", "newK and newV must be set together");
    if (!op.newK.empty()) {
        rule.shape(op.newK, "newK", {tokens, kvHeads, headDim});
        rule.floating(op.newK, "newK");
        rule.rowsContiguous(op.newK, "newK");
        rule.shape(op.newV, "newV", {tokens, kvHeads, headDim});
        rule.floating(op.newV, "newV");
        rule.rowsContiguous(op.newV, "newV");
        rule.disjoint(op.out, "out", op.newK, "newK");
        rule.disjoint(op.out, "out", op.newV, "newV");
    }
    if (!op.sinks.empty()) {
        rule.shape(op.sinks, "sinks", {heads});
        rule.floating(op.sinks, "sinks");
    }
    rule.require(op.program.window > 0, "program.window", "it is not positive");
    rule.require(op.program.softCap >= 0, "program.softCap", "it is negative");
    rule.shape(op.out, "out", {tokens, heads, headDim});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.q, "q");
    if (!op.lse.empty()) {
        rule.shape(op.lse, "lse", {tokens, heads});
        rule.dtype(op.lse, "lse", DType::F32);
        rule.contiguous(op.lse, "lse");
    }
}

Cost cost(const Attention& op, const DeviceTraits&) {
    const std::int64_t headDim = op.q.shape[2];
    Cost cost;
    cost.bytesRead =
        op.q.bytes() + 2 * bytesOf(op.cache.keys.dtype, visibleKeys(op) * op.cache.keys.shape[2] * headDim);
    cost.bytesWritten = op.out.bytes() + (op.lse.empty() ? 0 : op.lse.bytes());
    cost.flops = static_cast<std::uint64_t>(4.0 * visiblePairs(op) * static_cast<double>(op.q.shape[1] * headDim));
    cost.computeType = op.q.dtype;
    return cost;
}

std::uint64_t scratch(const Attention& op, const DeviceTraits& traits) {
    // A GPU's partial results; the CPU with a GPU's traits allocates them as well.
    if (!traits.arch.starts_with("sm_") || !AttentionSplits::onTensorCores(op)) {
        return 0;
    }
    return AttentionSplits(op, traits.multiprocessors).bytes;
}

} // namespace vitrine::kernels
