// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/weights.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/linear/weight_check.h"

namespace vitrine::kernels {

void check(const Dequantize& op) {
    const OpCheck rule(Dequantize::kName);
    checkWeight(rule, op.weight, "weight");
    rule.require(op.weight.quantized(), "weight", "it is dense already");
    rule.require(op.out.shape == op.weight.shape, "out", "shape differs from the weight's");
    rule.present(op.out, "out");
    rule.floating(op.out, "out");
    rule.contiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.weight.data, "weight");
    rule.disjoint(op.out, "out", op.weight.scales, "weight");
    rule.disjoint(op.out, "out", op.weight.scaleScales, "weight");
}

Cost cost(const Dequantize& op, const DeviceTraits&) {
    return streamingCost(op.weight.bytes(), op.out.bytes(), 0, op.out.dtype);
}

std::uint64_t scratch(const Dequantize&, const DeviceTraits&) {
    return 0;
}

void check(const FillRandom& op) {
    const OpCheck rule(FillRandom::kName);
    rule.present(op.out, "out");
    rule.contiguous(op.out, "out");
    if (op.out.dtype == DType::U8) {
        rule.require(op.deviation != 0 || (op.center >= 0 && op.center <= 255), "center", "it is no byte");
    } else {
        rule.floating(op.out, "out");
    }
}

Cost cost(const FillRandom& op, const DeviceTraits&) {
    return streamingCost(0, op.out.bytes(), 0, op.out.dtype);
}

std::uint64_t scratch(const FillRandom&, const DeviceTraits&) {
    return 0;
}

void check(const TransposeCopy& op) {
    const OpCheck rule(TransposeCopy::kName);
    const int rank = op.x.shape.rank();
    rule.require(rank >= 2 && op.out.shape.rank() == rank, "x", "rank is below 2 or differs from out's");
    for (int dim = 0; dim + 2 < rank; ++dim) {
        rule.require(op.x.shape[dim] == op.out.shape[dim], "out", "leading dimensions differ from x's");
    }
    rule.require(op.x.shape[rank - 1] == op.out.shape[rank - 2] && op.x.shape[rank - 2] == op.out.shape[rank - 1],
                 "out", "the last two dimensions are not x's swapped");
    rule.require(op.x.dtype == op.out.dtype, "out", "dtype differs from x's");
    rule.require(bitsOf(op.x.dtype) >= 8, "x", "elements are smaller than a byte");
    rule.present(op.x, "x");
    rule.present(op.out, "out");
    rule.contiguous(op.x, "x");
    rule.contiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.x, "x");
}

Cost cost(const TransposeCopy& op, const DeviceTraits&) {
    return streamingCost(op.x.bytes(), op.out.bytes(), 0, op.x.dtype);
}

std::uint64_t scratch(const TransposeCopy&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
