// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/sum_rows.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/rowwise/sum_rows_parts.h"

namespace vitrine::kernels {

void check(const SumRows& op) {
    const OpCheck rule(SumRows::kName);
    rule.matrix(op.x, "x", OpCheck::kAny, OpCheck::kAny);
    rule.shape(op.out, "out", {op.x.shape[1]});
    rule.wideFloating(op.out, "out");
    rule.contiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.x, "x");
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const SumRows& op, const DeviceTraits& traits) {
    const std::uint64_t parts = scratch(op, traits);
    return streamingCost(op.x.bytes() + parts + (op.accumulate ? op.out.bytes() : 0), op.out.bytes() + parts,
                         static_cast<std::uint64_t>(op.x.shape.count()), op.out.dtype);
}

std::uint64_t scratch(const SumRows& op, const DeviceTraits&) {
    const RowParts parts = partsOf(op);
    return parts.count == 1 ? 0 : bytesOf(parts.dtype, parts.count * op.x.shape[1]);
}

RowParts partsOf(const SumRows& op) {
    // Enough work for a GPU, as long as a part has some rows.
    constexpr std::int64_t kBlocks = 512, kColumns = 256, kLeastRows = 64;
    const std::int64_t rows = op.x.shape[0];
    const std::int64_t columns = std::max<std::int64_t>(1, (op.x.shape[1] + kColumns - 1) / kColumns);
    const std::int64_t most = std::min((kBlocks + columns - 1) / columns, (rows + kLeastRows - 1) / kLeastRows);
    RowParts parts;
    parts.rows = std::max<std::int64_t>(1, (rows + most - 1) / std::max<std::int64_t>(1, most));
    parts.count = std::max<std::int64_t>(1, (rows + parts.rows - 1) / parts.rows);
    parts.dtype = op.x.dtype == DType::F64 || op.out.dtype == DType::F64 ? DType::F64 : DType::F32;
    return parts;
}

} // namespace vitrine::kernels
