// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/attention.h"

#include <algorithm>
#include <optional>

#include "kernels/ops/attention/attention_splits.h"
#include "kernels/ops/attention/kv_pages.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

namespace {

/// How far a row sees, whatever its position; no number: to the end.
struct Sight {
    std::optional<std::int64_t> keysBefore, keysAfter;

    explicit Sight(const BoundProgram& mask) {
        if (!mask.empty()) {
            const AnalysisOf analysis(mask);
            keysBefore = analysis->keysBefore;
            keysAfter = analysis->keysAfter;
        }
    }
    /// Keys of one row far from the start and the end.
    std::optional<std::int64_t> width() const {
        return keysBefore && keysAfter ? std::optional(std::max<std::int64_t>(0, *keysBefore + *keysAfter + 1))
                                       : std::nullopt;
    }
};

/// Keys over all sequences that the rows may see, as far as the host knows.
std::int64_t visibleKeys(const Attention& op, const Sight& sight) {
    const std::int64_t sequences = op.cache.blockTable.shape[0];
    const std::int64_t tokens = op.q.shape[0];
    const std::int64_t kept = op.cache.totalTokens != 0
                                  ? op.cache.totalTokens
                                  : sequences * op.cache.blockTable.shape[1] * op.cache.keys.shape[1];
    const std::int64_t keys = kept + (op.newK.empty() || !op.cache.ring ? 0 : tokens);
    const std::optional<std::int64_t> width = sight.width();
    return width ? std::min(keys, sequences * *width + tokens) : keys;
}

/// (row, key) pairs: rows are the last ones of their sequences, so that those of a causal prefill see half of each
/// other.
double visiblePairs(const Attention& op, const Sight& sight) {
    const auto sequences = static_cast<double>(std::max<std::int64_t>(1, op.cache.blockTable.shape[0]));
    const auto tokens = static_cast<double>(op.q.shape[0]);
    const double rows = tokens / sequences;
    const double keys = static_cast<double>(visibleKeys(op, sight)) / sequences;
    double perRow = keys;
    if (sight.keysAfter) {
        perRow = std::clamp(keys - (rows - 1) / 2 + static_cast<double>(*sight.keysAfter), std::min(keys, 1.0), keys);
    }
    if (const std::optional<std::int64_t> width = sight.width()) {
        perRow = std::min(perRow, static_cast<double>(*width));
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
    rule.programs(op.score, op.mask);
    rule.shape(op.out, "out", {tokens, heads, headDim});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.q, "q");
    if (!op.lse.empty()) {
        rule.shape(op.lse, "lse", {heads, tokens});
        rule.dtype(op.lse, "lse", DType::F32);
        rule.contiguous(op.lse, "lse");
    }
}

Cost cost(const Attention& op, const DeviceTraits& traits) {
    const std::int64_t headDim = op.q.shape[2];
    const Sight sight(op.mask);
    Cost cost;
    const std::uint64_t halves = op.cache.valuesAreKeys() ? 1 : 2;
    cost.bytesRead = op.q.bytes() + halves *
                                        static_cast<std::uint64_t>(visibleKeys(op, sight) * op.cache.keys.shape[2]) *
                                        kvRowBytes(op.cache.keys.dtype, headDim);
    cost.bytesWritten = op.out.bytes() + (op.lse.empty() ? 0 : op.lse.bytes());
    cost.flops =
        static_cast<std::uint64_t>(4.0 * visiblePairs(op, sight) * static_cast<double>(op.q.shape[1] * headDim));
    cost.computeType = op.q.dtype;
    cost.share = traits.attentionShare(op.q.dtype, headDim, false);
    cost.rateClass = attentionRateClass(headDim, op.cache.keys.dtype);
    return cost;
}

std::uint64_t scratch(const Attention& op, const DeviceTraits& traits) {
    // A GPU's; the CPU with a GPU's traits allocates it as well.
    return traits.features.kernelScratch ? AttentionScratch(op, traits).bytes : 0;
}

} // namespace vitrine::kernels
