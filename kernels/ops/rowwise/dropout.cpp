// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/dropout.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

void check(const Dropout& op) {
    const OpCheck rule(Dropout::kName);
    rule.matrix(op.x, "x", OpCheck::kAny, OpCheck::kAny);
    rule.matrix(op.out, "out", op.x.shape[0], op.x.shape[1]);
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
    rule.require(op.probability >= 0 && op.probability < 1, "probability", "it is not from 0 to below 1");
    rule.require(op.firstRow >= 0, "firstRow", "it is negative");
}

Cost cost(const Dropout& op, const DeviceTraits&) {
    // Ten rounds of Philox for four elements.
    return streamingCost(op.x.bytes(), op.out.bytes(), 25 * static_cast<std::uint64_t>(op.out.shape.count()),
                         op.out.dtype);
}

std::uint64_t scratch(const Dropout&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
