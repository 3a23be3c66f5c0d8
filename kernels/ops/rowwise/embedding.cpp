// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/embedding.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const Embedding& op) {
    const OpCheck rule(Embedding::kName);
    rule.shape(op.ids, "ids", {OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    rule.shape(op.table, "table", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.table, "table");
    rule.rowsContiguous(op.table, "table");
    rule.shape(op.out, "out", {op.ids.shape[0], op.table.shape[1]});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.table, "table");
    rule.disjoint(op.out, "out", op.ids, "ids");
}

Cost cost(const Embedding& op, const DeviceTraits&) {
    const std::int64_t elements = op.out.shape.count();
    return streamingCost(op.ids.bytes() + bytesOf(op.table.dtype, elements), op.out.bytes(),
                         op.scale == 1 ? 0 : static_cast<std::uint64_t>(elements), op.out.dtype);
}

std::uint64_t scratch(const Embedding&, const DeviceTraits&) {
    return 0;
}

void check(const EmbeddingGradient& op) {
    const OpCheck rule(EmbeddingGradient::kName);
    rule.shape(op.ids, "ids", {OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    rule.shape(op.order, "order", {op.ids.shape[0]});
    rule.dtype(op.order, "order", DType::I32);
    rule.contiguous(op.order, "order");
    rule.matrix(op.gradOut, "gradOut", op.ids.shape[0], OpCheck::kAny);
    rule.matrix(op.gradTable, "gradTable", OpCheck::kAny, op.gradOut.shape[1]);
    rule.wideFloating(op.gradTable, "gradTable");
    rule.disjoint(op.gradTable, "gradTable", op.gradOut, "gradOut");
    rule.disjoint(op.gradTable, "gradTable", op.ids, "ids");
    rule.disjoint(op.gradTable, "gradTable", op.order, "order");
}

/// As if every token had an id of its own.
Cost cost(const EmbeddingGradient& op, const DeviceTraits&) {
    const std::int64_t elements = op.gradOut.shape.count();
    const std::uint64_t touched = bytesOf(op.gradTable.dtype, elements);
    return streamingCost(op.ids.bytes() + op.order.bytes() + op.gradOut.bytes() + touched, touched,
                         2 * static_cast<std::uint64_t>(elements), op.gradTable.dtype);
}

std::uint64_t scratch(const EmbeddingGradient&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
