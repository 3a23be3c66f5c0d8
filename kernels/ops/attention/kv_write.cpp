// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_write.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/attention/kv_pages.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const KvWrite& op) {
    const OpCheck rule(KvWrite::kName);
    rule.shape(op.k, "k", {OpCheck::kAny, OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.k, "k");
    rule.rowsContiguous(op.k, "k");
    const std::int64_t tokens = op.k.shape[0];
    rule.shape(op.v, "v", {tokens, op.k.shape[1], op.k.shape[2]});
    rule.floating(op.v, "v");
    rule.rowsContiguous(op.v, "v");
    rule.shape(op.sequence, "sequence", {tokens});
    rule.dtype(op.sequence, "sequence", DType::I32);
    rule.shape(op.positions, "positions", {tokens});
    rule.dtype(op.positions, "positions", DType::I32);
    checkKvView(rule, op.cache, op.k.shape[1], op.k.shape[2]);
    rule.require(!op.cache.valuesAreKeys() || op.v.data == op.k.data, "v", "not k, but the cache has one row for both");
}

Cost cost(const KvWrite& op, const DeviceTraits&) {
    const bool once = op.cache.valuesAreKeys();
    const auto rows = (once ? 1 : 2) * static_cast<std::uint64_t>(op.k.shape[0] * op.k.shape[1]);
    const std::uint64_t kept = op.writes ? rows * kvRowBytes(op.cache.keys.dtype, op.k.shape[2]) : 0;
    const std::uint64_t tensors = op.k.bytes() + (once ? 0 : op.v.bytes());
    return streamingCost(tensors + op.positions.bytes() + op.sequence.bytes(), kept + (op.rounds ? tensors : 0), 0,
                         op.k.dtype);
}

std::uint64_t scratch(const KvWrite&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
