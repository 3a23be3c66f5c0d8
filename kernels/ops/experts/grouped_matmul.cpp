// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/experts/grouped_matmul.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/experts/expert_groups.h"
#include "kernels/ops/experts/grouped_products.h"
#include "kernels/ops/linear/weight_check.h"

namespace vitrine::kernels {

namespace {

void checkGroupedRows(const OpCheck& rule, const TensorView& rows, std::string_view field, std::int64_t count,
                      std::int64_t width) {
    rule.shape(rows, field, {count, width});
    rule.floating(rows, field);
    rule.rowsContiguous(rows, field);
}

void checkStarts(const OpCheck& rule, const TensorView& starts, std::int64_t experts) {
    rule.shape(starts, "starts", {experts + 1});
    rule.dtype(starts, "starts", DType::I32);
    rule.contiguous(starts, "starts");
    rule.require(experts <= kMaxExperts, "starts", "more than 4096 experts");
}

void checkStack(const OpCheck& rule, const WeightView& weight, const TensorView& starts) {
    checkWeight(rule, weight, "weight");
    rule.require(weight.shape.rank() == 3, "weight", "a single matrix where a stack is needed");
    rule.contiguous(weight.data, "weight");
    checkStarts(rule, starts, weight.experts());
}

void checkSums(const OpCheck& rule, const TensorView& sums, std::string_view field) {
    rule.require(sums.dtype == DType::F32 || sums.dtype == DType::F64, field, "neither float32 nor float64");
    rule.contiguous(sums, field);
}

/// `rows` rows times the matrices of a stack that these rows need.
Cost groupedCost(const TensorView& in, const TensorView& out, const WeightView& weight, bool accumulate) {
    const auto rows = static_cast<std::uint64_t>(in.shape[0]);
    const auto experts = static_cast<std::uint64_t>(std::max<std::int64_t>(1, weight.experts()));
    Cost cost;
    cost.bytesRead = in.bytes() + weight.bytes() / experts * std::min(experts, rows) + (accumulate ? out.bytes() : 0);
    cost.bytesWritten = out.bytes();
    cost.flops = 2 * rows * static_cast<std::uint64_t>(weight.outFeatures() * weight.inFeatures());
    cost.computeType = in.dtype;
    return cost;
}

/// What expanding the stack adds where a product has scratch for it.
Cost expandedCost(Cost cost, const WeightView& weight, std::uint64_t scratchBytes) {
    if (scratchBytes > 0) {
        const std::uint64_t bytes = bytesOf(DType::BF16, weight.shape.count());
        cost.bytesRead += bytes;
        cost.bytesWritten += bytes;
        const std::int64_t together = ExpandedExperts(weight, ScratchLayout()).together;
        cost.launches = 2 * static_cast<std::uint32_t>((weight.experts() + together - 1) / together);
    }
    return cost;
}

} // namespace

bool ExpandedExperts::fits(const WeightView& weight, DType rows, DType out) {
    return weight.quantized() && rows == DType::BF16 && out == DType::BF16;
}

ExpandedExperts::ExpandedExperts(const WeightView& weight, ScratchLayout layout) {
    const std::uint64_t one = bytesOf(DType::BF16, weight.outFeatures() * weight.inFeatures());
    together = std::clamp<std::int64_t>(static_cast<std::int64_t>(kMostBytes / std::max<std::uint64_t>(one, 1)), 1,
                                        weight.experts());
    values = layout.take(DType::BF16, Shape{together, weight.outFeatures(), weight.inFeatures()});
    bytes = layout.bytes();
}

std::uint64_t ExpandedExperts::scratchBytes(const WeightView& weight, DType rows, DType out,
                                            const DeviceTraits& traits) {
    return traits.features.kernelScratch && fits(weight, rows, out) ? ExpandedExperts(weight, ScratchLayout()).bytes
                                                                    : 0;
}

WeightView sliceExperts(const WeightView& weight, std::int64_t begin, std::int64_t end) {
    WeightView out = weight;
    for (TensorView* field : {&out.data, &out.scales, &out.zeros, &out.scaleScales, &out.order}) {
        if (!field->empty()) {
            *field = sliceRows(*field, begin, end);
        }
    }
    out.shape = Shape{end - begin, weight.outFeatures(), weight.inFeatures()};
    return out;
}

GroupedAdapterProducts::GroupedAdapterProducts(const GroupedMatmul& op, ScratchLayout layout,
                                               const DeviceTraits& traits) {
    const AdapterView& adapter = op.linear.adapter;
    base = op;
    base.linear.adapter = {};
    down.x = op.x;
    down.starts = op.starts;
    down.linear.weight = denseWeight(adapter.a);
    down.scale = adapter.scale;
    down.out = layout.take(op.x.dtype, Shape{op.x.shape[0], adapter.rank()});
    up.x = down.out;
    up.starts = op.starts;
    up.linear.weight = denseWeight(adapter.b);
    up.accumulate = true;
    up.out = op.out;
    const std::uint64_t shared = std::max({scratch(base, traits), scratch(down, traits), scratch(up, traits)});
    if (shared > 0) {
        const TensorView piece = layout.takeBytes(shared);
        base.scratch = piece;
        down.scratch = piece;
        up.scratch = piece;
    }
    bytes = layout.bytes();
}

void check(const GroupedMatmul& op) {
    const OpCheck rule(GroupedMatmul::kName);
    checkStack(rule, op.linear.weight, op.starts);
    const std::int64_t out = op.linear.weight.outFeatures();
    checkGroupedRows(rule, op.x, "x", OpCheck::kAny, op.linear.weight.inFeatures());
    checkGroupedRows(rule, op.out, "out", op.x.shape[0], out);
    if (!op.linear.bias.empty()) {
        checkGroupedRows(rule, op.linear.bias, "bias", op.linear.weight.experts(), out);
    }
    if (!op.linear.adapter.empty()) {
        const AdapterView& adapter = op.linear.adapter;
        rule.require(adapter.dropout.probability == 0, "adapter.dropout", "not 0: adapters of stacks have no dropout");
        const std::int64_t experts = op.linear.weight.experts();
        rule.shape(adapter.a, "adapter.a", {experts, OpCheck::kAny, op.linear.weight.inFeatures()});
        rule.shape(adapter.b, "adapter.b", {experts, out, adapter.rank()});
        rule.contiguous(adapter.a, "adapter.a");
        rule.contiguous(adapter.b, "adapter.b");
    }
    rule.disjoint(op.out, "out", op.x, "x");
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const GroupedMatmul& op, const DeviceTraits& traits) {
    if (op.linear.adapter.empty()) {
        return expandedCost(groupedCost(op.x, op.out, op.linear.weight, op.accumulate), op.linear.weight,
                            scratch(op, traits));
    }
    Cost sum;
    sum.launches = 0;
    sum.computeType = op.x.dtype;
    GroupedAdapterProducts(op, ScratchLayout(), traits).forEach([&](const GroupedMatmul& part) {
        addCost(sum, cost(part, traits));
    });
    return sum;
}

std::uint64_t scratch(const GroupedMatmul& op, const DeviceTraits& traits) {
    return op.linear.adapter.empty() ? ExpandedExperts::scratchBytes(op.linear.weight, op.x.dtype, op.out.dtype, traits)
                                     : GroupedAdapterProducts(op, ScratchLayout(), traits).bytes;
}

void check(const GroupedInputGradient& op) {
    const OpCheck rule(GroupedInputGradient::kName);
    checkStack(rule, op.weight, op.starts);
    checkGroupedRows(rule, op.gradOut, "gradOut", OpCheck::kAny, op.weight.outFeatures());
    rule.require(!op.weight.quantized() || op.gradOut.dtype != DType::F64, "gradOut",
                 "a packed weight is multiplied in float32, and gradOut is float64");
    checkGroupedRows(rule, op.gradX, "gradX", op.gradOut.shape[0], op.weight.inFeatures());
    rule.disjoint(op.gradX, "gradX", op.gradOut, "gradOut");
    if (!op.low.empty()) {
        checkGroupedRows(rule, op.low, "low", op.gradOut.shape[0], OpCheck::kAny);
        rule.disjoint(op.gradX, "gradX", op.low, "low");
        rule.shape(op.adapterA, "adapterA", {op.weight.experts(), op.low.shape[1], op.weight.inFeatures()});
        rule.floating(op.adapterA, "adapterA");
        rule.contiguous(op.adapterA, "adapterA");
    }
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const GroupedInputGradient& op, const DeviceTraits& traits) {
    Cost sum =
        expandedCost(groupedCost(op.gradOut, op.gradX, op.weight, op.accumulate), op.weight, scratch(op, traits));
    if (!op.low.empty()) {
        addCost(sum, groupedCost(op.low, op.gradX, denseWeight(op.adapterA), true));
    }
    return sum;
}

std::uint64_t scratch(const GroupedInputGradient& op, const DeviceTraits& traits) {
    return ExpandedExperts::scratchBytes(op.weight, op.gradOut.dtype, op.gradX.dtype, traits);
}

void check(const GroupedWeightGradient& op) {
    const OpCheck rule(GroupedWeightGradient::kName);
    checkGroupedRows(rule, op.x, "x", OpCheck::kAny, OpCheck::kAny);
    checkGroupedRows(rule, op.gradOut, "gradOut", op.x.shape[0], OpCheck::kAny);
    rule.shape(op.gradWeight, "gradWeight", {OpCheck::kAny, op.gradOut.shape[1], op.x.shape[1]});
    rule.floating(op.gradWeight, "gradWeight");
    rule.contiguous(op.gradWeight, "gradWeight");
    checkStarts(rule, op.starts, op.gradWeight.shape[0]);
}

Cost cost(const GroupedWeightGradient& op, const DeviceTraits&) {
    Cost cost;
    cost.bytesRead = op.x.bytes() + op.gradOut.bytes() + (op.accumulate ? op.gradWeight.bytes() : 0);
    cost.bytesWritten = op.gradWeight.bytes();
    cost.flops = 2 * static_cast<std::uint64_t>(op.x.shape.count()) * static_cast<std::uint64_t>(op.gradOut.shape[1]);
    cost.computeType = op.gradOut.dtype;
    return cost;
}

std::uint64_t scratch(const GroupedWeightGradient&, const DeviceTraits&) {
    return 0;
}

void check(const GroupedBiasGradient& op) {
    const OpCheck rule(GroupedBiasGradient::kName);
    checkGroupedRows(rule, op.gradOut, "gradOut", OpCheck::kAny, OpCheck::kAny);
    rule.shape(op.gradBias, "gradBias", {OpCheck::kAny, op.gradOut.shape[1]});
    checkSums(rule, op.gradBias, "gradBias");
    checkStarts(rule, op.starts, op.gradBias.shape[0]);
    if (!op.weights.empty()) {
        rule.shape(op.weights, "weights", {op.gradOut.shape[0]});
        rule.dtype(op.weights, "weights", DType::F32);
    }
}

Cost cost(const GroupedBiasGradient& op, const DeviceTraits&) {
    return streamingCost(op.gradOut.bytes() + op.gradBias.bytes(), op.gradBias.bytes(),
                         2 * static_cast<std::uint64_t>(op.gradOut.shape.count()), op.gradOut.dtype);
}

std::uint64_t scratch(const GroupedBiasGradient&, const DeviceTraits&) {
    return 0;
}

void check(const GroupedDots& op) {
    const OpCheck rule(GroupedDots::kName);
    checkGroupedRows(rule, op.x, "x", OpCheck::kAny, OpCheck::kAny);
    checkGroupedRows(rule, op.vectors, "vectors", OpCheck::kAny, op.x.shape[1]);
    checkStarts(rule, op.starts, op.vectors.shape[0]);
    rule.shape(op.out, "out", {op.x.shape[0]});
    checkSums(rule, op.out, "out");
}

Cost cost(const GroupedDots& op, const DeviceTraits&) {
    return streamingCost(op.x.bytes() + op.vectors.bytes(), op.out.bytes(),
                         2 * static_cast<std::uint64_t>(op.x.shape.count()), op.x.dtype);
}

std::uint64_t scratch(const GroupedDots&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
