// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/gated_activation.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const GatedActivation& op) {
    const OpCheck rule(GatedActivation::kName);
    rule.shape(op.gateUp, "gateUp", {OpCheck::kAny, OpCheck::kAny});
    rule.floating(op.gateUp, "gateUp");
    rule.rowsContiguous(op.gateUp, "gateUp");
    rule.require(op.gateUp.shape[1] % 2 == 0, "gateUp", "its width is odd");
    rule.shape(op.out, "out", {op.gateUp.shape[0], op.gateUp.shape[1] / 2});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.gateUp, "gateUp");
}

Cost cost(const GatedActivation& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.out.shape.count());
    return streamingCost(op.gateUp.bytes(), op.out.bytes(), 8 * elements, op.out.dtype);
}

std::uint64_t scratch(const GatedActivation&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
