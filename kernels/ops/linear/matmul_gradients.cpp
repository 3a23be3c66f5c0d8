// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul_gradients.h"

#include "kernels/ops/common/op_check.h"
#include "kernels/ops/linear/expanded_weight.h"
#include "kernels/ops/linear/input_gradient.h"
#include "kernels/ops/linear/weight_check.h"

namespace vitrine::kernels {

namespace {

/// A product that reads `inputBytes` and writes `out`, with `depth` products to each sum.
Cost productCost(std::uint64_t inputBytes, const TensorView& out, bool accumulate, std::int64_t depth, DType type) {
    Cost cost;
    cost.bytesRead = inputBytes + (accumulate ? out.bytes() : 0);
    cost.bytesWritten = out.bytes();
    cost.flops = 2 * static_cast<std::uint64_t>(out.shape.count()) * static_cast<std::uint64_t>(depth);
    cost.computeType = type;
    return cost;
}

} // namespace

Matmul asMatmul(const MatmulInputGradient& op) {
    Matmul product;
    product.x = op.gradOut;
    product.weight = op.weight;
    product.weight.transposed = !op.weight.transposed;
    product.weight.shape = Shape{op.weight.inFeatures(), op.weight.outFeatures()};
    product.residual = op.accumulate ? op.gradX : TensorView{};
    product.out = op.gradX;
    product.scale = op.scale;
    product.scratch = op.scratch;
    return product;
}

void check(const MatmulInputGradient& op) {
    const OpCheck rule(MatmulInputGradient::kName);
    checkWeight(rule, op.weight, "weight");
    rule.require(op.weight.shape.rank() == 2, "weight", "a stack of matrices where a single one is needed");
    rule.matrix(op.gradOut, "gradOut", OpCheck::kAny, op.weight.outFeatures());
    rule.require(!op.weight.quantized() || op.gradOut.dtype != DType::F64, "gradOut",
                 "a packed weight is multiplied in float32, and gradOut is float64");
    rule.matrix(op.gradX, "gradX", op.gradOut.shape[0], op.weight.inFeatures());
    rule.disjoint(op.gradX, "gradX", op.gradOut, "gradOut");
    rule.disjoint(op.gradX, "gradX", op.weight.data, "weight");
    rule.disjoint(op.gradX, "gradX", op.weight.scales, "weight");
    rule.disjoint(op.gradX, "gradX", op.weight.scaleScales, "weight");
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const MatmulInputGradient& op, const DeviceTraits& traits) {
    Cost cost = productCost(op.gradOut.bytes() + op.weight.bytes(), op.gradX, op.accumulate, op.weight.outFeatures(),
                            op.gradOut.dtype);
    addExpansion(cost, asMatmul(op), traits);
    cost.rateClass = weightRateClass(op.weight.format);
    return cost;
}

std::uint64_t scratch(const MatmulInputGradient& op, const DeviceTraits& traits) {
    const Matmul product = asMatmul(op);
    return op.weight.quantized() ? expandedScratch(product, traits) : scratch(product, traits);
}

void check(const MatmulWeightGradient& op) {
    const OpCheck rule(MatmulWeightGradient::kName);
    rule.matrix(op.x, "x", OpCheck::kAny, OpCheck::kAny);
    rule.matrix(op.gradOut, "gradOut", op.x.shape[0], OpCheck::kAny);
    rule.matrix(op.gradWeight, "gradWeight", op.gradOut.shape[1], op.x.shape[1]);
    rule.disjoint(op.gradWeight, "gradWeight", op.x, "x");
    rule.disjoint(op.gradWeight, "gradWeight", op.gradOut, "gradOut");
}

Cost cost(const MatmulWeightGradient& op, const DeviceTraits&) {
    return productCost(op.x.bytes() + op.gradOut.bytes(), op.gradWeight, op.accumulate, op.x.shape[0],
                       op.gradOut.dtype);
}

std::uint64_t scratch(const MatmulWeightGradient&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
