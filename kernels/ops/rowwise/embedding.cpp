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

} // namespace vitrine::kernels
