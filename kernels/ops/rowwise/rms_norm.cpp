// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const RmsNorm& op) {
    const OpCheck rule(RmsNorm::kName);
    rule.shape(op.x, "x", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.x, "x");
    rule.rowsContiguous(op.x, "x");
    rule.shape(op.weight, "weight", {op.x.shape[1]});
    rule.floating(op.weight, "weight");
    rule.contiguous(op.weight, "weight");
    rule.shape(op.out, "out", {op.x.shape[0], op.x.shape[1]});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
    rule.disjoint(op.out, "out", op.weight, "weight");
    rule.require(op.x.shape[1] > 0, "x", "rows are empty");
}

Cost cost(const RmsNorm& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.x.shape.count());
    return streamingCost(op.x.bytes() + op.weight.bytes(), op.out.bytes(), 4 * elements, op.x.dtype);
}

std::uint64_t scratch(const RmsNorm&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
