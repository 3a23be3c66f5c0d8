// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/rms_norm.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/common/scratch_layout.h"
#include "kernels/ops/rowwise/rms_norm_parts.h"

namespace vitrine::kernels {

namespace {

void checkInputs(const OpCheck& rule, const RmsNorm& op) {
    rule.matrix(op.x, "x", OpCheck::kAny, OpCheck::kAny);
    rule.shape(op.weight, "weight", {op.x.shape[1]});
    rule.floating(op.weight, "weight");
    rule.contiguous(op.weight, "weight");
    rule.require(op.x.shape[1] > 0, "x", "rows are empty");
}

} // namespace

void check(const RmsNorm& op) {
    const OpCheck rule(RmsNorm::kName);
    checkInputs(rule, op);
    rule.matrix(op.out, "out", op.x.shape[0], op.x.shape[1]);
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
    rule.disjoint(op.out, "out", op.weight, "weight");
}

Cost cost(const RmsNorm& op, const DeviceTraits&) {
    const auto elements = static_cast<std::uint64_t>(op.x.shape.count());
    return streamingCost(op.x.bytes() + op.weight.bytes(), op.out.bytes(), 4 * elements, op.x.dtype);
}

std::uint64_t scratch(const RmsNorm&, const DeviceTraits&) {
    return 0;
}

void check(const RmsNormBackward& op) {
    const OpCheck rule(RmsNormBackward::kName);
    const TensorView& x = op.forward.x;
    checkInputs(rule, op.forward);
    rule.matrix(op.gradOut, "gradOut", x.shape[0], x.shape[1]);
    rule.matrix(op.gradX, "gradX", x.shape[0], x.shape[1]);
    rule.sameOrDisjoint(op.gradX, "gradX", op.gradOut, "gradOut");
    rule.disjoint(op.gradX, "gradX", x, "x");
    rule.disjoint(op.gradX, "gradX", op.forward.weight, "weight");
    if (!op.gradResidual.empty()) {
        rule.matrix(op.gradResidual, "gradResidual", x.shape[0], x.shape[1]);
        rule.sameOrDisjoint(op.gradX, "gradX", op.gradResidual, "gradResidual");
    }
    if (!op.gradWeight.empty()) {
        rule.shape(op.gradWeight, "gradWeight", {x.shape[1]});
        rule.wideFloating(op.gradWeight, "gradWeight");
        rule.contiguous(op.gradWeight, "gradWeight");
        rule.disjoint(op.gradWeight, "gradWeight", x, "x");
        rule.disjoint(op.gradWeight, "gradWeight", op.forward.weight, "weight");
        rule.disjoint(op.gradWeight, "gradWeight", op.gradOut, "gradOut");
        rule.disjoint(op.gradWeight, "gradWeight", op.gradResidual, "gradResidual");
        rule.disjoint(op.gradWeight, "gradWeight", op.gradX, "gradX");
    }
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const RmsNormBackward& op, const DeviceTraits& traits) {
    const auto elements = static_cast<std::uint64_t>(op.gradX.shape.count());
    const TensorView& x = op.forward.x;
    Cost sum = streamingCost(x.bytes() + op.forward.weight.bytes() + op.gradOut.bytes() +
                                 (op.gradResidual.empty() ? 0 : op.gradResidual.bytes()),
                             op.gradX.bytes(), 12 * elements, x.dtype);
    if (!op.gradWeight.empty()) {
        const RmsNormParts parts = partsOf(op);
        sum.bytesWritten += parts.sums.x.bytes();
        addCost(sum, cost(parts.sums, traits));
    }
    return sum;
}

std::uint64_t scratch(const RmsNormBackward& op, const DeviceTraits&) {
    return op.gradWeight.empty() ? 0 : partsOf(op).scratchBytes;
}

RmsNormParts partsOf(const RmsNormBackward& op) {
    const std::int64_t rows = op.forward.x.shape[0];
    const std::int64_t dim = op.forward.x.shape[1];
    RmsNormParts parts;
    parts.wide =
        op.forward.x.dtype == DType::F64 || op.gradOut.dtype == DType::F64 || op.gradWeight.dtype == DType::F64;
    if (op.gradWeight.empty()) {
        parts.count = rows;
        return parts;
    }
    // As many as a large GPU runs at a time: narrow rows have a warp for a part, wide ones a block.
    const std::int64_t most = dim <= 512 ? 2048 : dim <= 8192 ? 512 : 256;
    parts.rows = std::max<std::int64_t>(1, (rows + most - 1) / most);
    parts.count = (rows + parts.rows - 1) / parts.rows;
    ScratchLayout layout = op.scratch.empty() ? ScratchLayout() : ScratchLayout(op.scratch.data);
    parts.sums.x = layout.take(parts.wide ? DType::F64 : DType::F32, Shape{parts.count, dim});
    parts.sums.out = op.gradWeight;
    parts.sums.accumulate = true;
    parts.sums.scratch = layout.takeBytes(scratch(parts.sums, DeviceTraits{}));
    parts.scratchBytes = layout.bytes();
    return parts;
}

} // namespace vitrine::kernels
