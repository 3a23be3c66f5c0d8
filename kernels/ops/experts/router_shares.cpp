// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/router_shares.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const RouterShares& op) {
    check(op.forward);
    const OpCheck rule(RouterShares::kName);
    const TensorView& logits = op.forward.logits;
    rule.shape(op.out, "out", {logits.shape[0], 2 * logits.shape[1]});
    rule.dtype(op.out, "out", DType::F32);
    rule.contiguous(op.out, "out");
    rule.disjoint(op.out, "out", logits, "logits");
}

Cost cost(const RouterShares& op, const DeviceTraits&) {
    return streamingCost(op.forward.logits.bytes() + op.forward.ids.bytes(), op.out.bytes(),
                         4 * static_cast<std::uint64_t>(op.forward.logits.shape.count()), DType::F32);
}

std::uint64_t scratch(const RouterShares&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
