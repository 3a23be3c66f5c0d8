// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/linear/weight_check.h"

namespace vitrine::kernels {

void check(const PackWeight& op) {
    const OpCheck rule(PackWeight::kName);
    checkWeight(rule, op.out, "out");
    rule.require(op.x.shape == op.out.shape, "x", "shape differs from out's");
    rule.present(op.x, "x");
    rule.floating(op.x, "x");
    rule.contiguous(op.x, "x");
    rule.require(isFloat(op.type), "type", "it is not F32, BF16 or F16");
    const WeightFormat format = op.out.format;
    rule.require(format == WeightFormat::Int4 || format == WeightFormat::Fp8 || format == WeightFormat::Mxfp4, "out",
                 "it is not INT4, FP8 or MXFP4");
    rule.require(op.out.zeros.empty() && op.out.order.empty(), "out", "it has zeros or an order");
    rule.require(op.out.inFeatures() % op.out.group == 0 || format == WeightFormat::Fp8, "out",
                 "inputs make no whole groups");
    if (format == WeightFormat::Int4) {
        rule.dtype(op.out.scales, "out.scales", op.type);
        rule.require(op.out.inFeatures() % 2 == 0 && op.out.group % 2 == 0, "out", "groups are of an odd number");
    }
    if (format == WeightFormat::Fp8) {
        rule.dtype(op.out.scales, "out.scales", DType::F32);
    }
    if (!op.changed.empty()) {
        rule.shape(op.changed, "changed", {1});
        rule.dtype(op.changed, "changed", DType::I64);
    }
    rule.disjoint(op.out.data, "out", op.x, "x");
    rule.disjoint(op.out.scales, "out", op.x, "x");
}

Cost cost(const PackWeight& op, const DeviceTraits&) {
    const std::uint64_t before = op.changed.empty() ? 0 : op.out.data.bytes();
    return streamingCost(op.x.bytes() + before, op.out.bytes(), 0, DType::F32);
}

std::uint64_t scratch(const PackWeight&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
