// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/matmul.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/linear/adapter_products.h"
#include "kernels/ops/linear/expanded_weight.h"
#include "kernels/ops/linear/weight_check.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

void checkAdapter(const OpCheck& rule, const AdapterView& adapter, const WeightView& weight) {
    rule.shape(adapter.a, "adapter.a", {OpCheck::kAny, weight.inFeatures()});
    rule.shape(adapter.b, "adapter.b", {weight.outFeatures(), adapter.rank()});
    for (const auto& [matrix, field] : {std::pair{&adapter.a, "adapter.a"}, std::pair{&adapter.b, "adapter.b"}}) {
        rule.floating(*matrix, field);
        rule.rowsContiguous(*matrix, field);
    }
}

} // namespace

void check(const Matmul& op) {
    const OpCheck rule(Matmul::kName);
    checkWeight(rule, op.weight, "weight");
    rule.require(op.weight.shape.rank() == 2, "weight", "a stack of matrices where a single one is needed");
    rule.shape(op.x, "x", {OpCheck::kAny, op.weight.inFeatures()});
    rule.floating(op.x, "x");
    rule.rowsContiguous(op.x, "x");
    if (!op.adapter.empty()) {
        checkAdapter(rule, op.adapter, op.weight);
    }
    const std::int64_t rows = op.x.shape[0];
    const std::int64_t out = op.weight.outFeatures();
    if (!op.bias.empty()) {
        rule.shape(op.bias, "bias", {out});
        rule.floating(op.bias, "bias");
        rule.contiguous(op.bias, "bias");
    }
    if (!op.residual.empty()) {
        rule.shape(op.residual, "residual", {rows, out});
        rule.floating(op.residual, "residual");
        rule.rowsContiguous(op.residual, "residual");
        rule.sameOrDisjoint(op.out, "out", op.residual, "residual");
    }
    rule.shape(op.out, "out", {rows, out});
    rule.floating(op.out, "out");
    rule.rowsContiguous(op.out, "out");
    rule.disjoint(op.out, "out", op.x, "x");
    rule.disjoint(op.out, "out", op.weight.data, "weight");
    rule.scratch(op.scratch, scratch(op, DeviceTraits{}));
}

Cost cost(const Matmul& op, const DeviceTraits& traits) {
    Cost cost;
    cost.rateClass = weightRateClass(op.weight.format);
    if (!op.adapter.empty()) {
        cost.launches = 0;
        cost.computeType = op.x.dtype;
        AdapterProducts(op, ScratchLayout(), traits).forEach([&](const auto& part) {
            addCost(cost, kernels::cost(part, traits));
        });
        return cost;
    }
    cost.bytesRead = op.x.bytes() + op.weight.bytes() + (op.bias.empty() ? 0 : op.bias.bytes()) +
                     (op.residual.empty() ? 0 : op.residual.bytes());
    cost.bytesWritten = op.out.bytes();
    cost.flops =
        2 * static_cast<std::uint64_t>(op.out.shape.count()) * static_cast<std::uint64_t>(op.weight.inFeatures());
    cost.computeType = op.x.dtype;
    addExpansion(cost, op, traits);
    return cost;
}

std::uint64_t scratch(const Matmul& op, const DeviceTraits& traits) {
    if (!op.adapter.empty()) {
        return AdapterProducts(op, ScratchLayout(), traits).bytes;
    }
    const std::int64_t rows = op.x.shape[0];
    const std::uint64_t prepared = rows <= kGemvRows ? bytesOf(DType::F32, rows * preparedSize(op.x.shape[1])) : 0;
    return std::max(prepared, expandedScratch(op, traits));
}

} // namespace vitrine::kernels
