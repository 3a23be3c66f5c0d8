// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/own_experts.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const OwnExperts& op) {
    const OpCheck rule(OwnExperts::kName);
    rule.shape(op.ids, "ids", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(op.ids, "ids", DType::I32);
    rule.contiguous(op.ids, "ids");
    rule.shape(op.out, "out", {op.ids.shape[0], op.ids.shape[1]});
    rule.dtype(op.out, "out", DType::I32);
    rule.contiguous(op.out, "out");
    rule.sameOrDisjoint(op.out, "out", op.ids, "ids");
    rule.require(op.first >= 0 && op.count > 0, "count", "there are no experts");
}

Cost cost(const OwnExperts& op, const DeviceTraits&) {
    return streamingCost(op.ids.bytes(), op.out.bytes(), static_cast<std::uint64_t>(op.ids.shape.count()), DType::F32);
}

std::uint64_t scratch(const OwnExperts&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
