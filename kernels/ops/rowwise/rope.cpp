// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rope.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const Rope& op) {
    const OpCheck rule(Rope::kName);
    rule.shape(op.x, "x", {OpCheck::kAny, OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.x, "x");
    rule.lastContiguous(op.x, "x");
    rule.require(op.x.shape[2] % 2 == 0, "x", "headDim is odd");
    rule.shape(op.positions, "positions", {op.x.shape[0]});
    rule.dtype(op.positions, "positions", DType::I32);
    rule.contiguous(op.positions, "positions");
    rule.shape(op.inverseFrequency, "inverseFrequency", {op.x.shape[2] / 2});
    rule.dtype(op.inverseFrequency, "inverseFrequency", DType::F32);
    rule.contiguous(op.inverseFrequency, "inverseFrequency");
    rule.disjoint(op.x, "x", op.inverseFrequency, "inverseFrequency");
    rule.disjoint(op.x, "x", op.positions, "positions");
}

Cost cost(const Rope& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.x.shape.count());
    return streamingCost(op.x.bytes() + op.positions.bytes() + op.inverseFrequency.bytes(), op.x.bytes(), 3 * elements,
                         op.x.dtype);
}

std::uint64_t scratch(const Rope&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
