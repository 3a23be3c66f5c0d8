// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/pack_experts.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const PackExperts& op) {
    const OpCheck rule(PackExperts::kName);
    rule.shape(op.ids, "ids", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    rule.shape(op.out, "out", {op.ids.shape[0], OpCheck::kAny, op.ids.shape[1]});
    rule.require(op.out.dtype == DType::U8 || op.out.dtype == DType::U16, "out", "must be of 8 or 16 bits, unsigned");
    rule.contiguous(op.out, "out");
    rule.require(op.layer >= 0 && op.layer < op.out.shape[1], "layer", "must be one of the layers of out");
    rule.disjoint(op.out, "out", op.ids, "ids");
}

Cost cost(const PackExperts& op, const DeviceTraits&) {
    return streamingCost(op.ids.bytes(), bytesOf(op.out.dtype, op.ids.shape.count()), 0, DType::I32);
}

std::uint64_t scratch(const PackExperts&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
