// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include <algorithm>

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"
#include "kernels/ops/linear/weight_check.h"

namespace vitrine::kernels {

namespace {

bool isPackable(WeightFormat format) {
    return format == WeightFormat::Int4 || format == WeightFormat::Fp8 || format == WeightFormat::Mxfp4;
}

void checkPlain(const OpCheck& rule, const WeightView& weight, std::string_view field) {
    rule.require(weight.zeros.empty() && weight.order.empty(), field, "it has zeros or an order");
    rule.require(weight.inFeatures() % weight.group == 0 || weight.format == WeightFormat::Fp8, field,
                 "inputs make no whole groups");
    if (weight.format == WeightFormat::Int4) {
        rule.require(weight.inFeatures() % 2 == 0 && weight.group % 2 == 0, field, "groups are of an odd number");
    }
    if (weight.format == WeightFormat::Fp8) {
        rule.dtype(weight.scales, field, DType::F32);
    }
}

void checkBase(const OpCheck& rule, const PackWeight& weight) {
    checkWeight(rule, weight.x, "x");
    rule.require(weight.x.shape == weight.out.shape, "x", "shape differs from out's");
    if (weight.x.quantized()) {
        rule.require(isPackable(weight.x.format), "x", "it is neither dense nor INT4, FP8 or MXFP4");
        checkPlain(rule, weight.x, "x");
    } else {
        rule.floating(weight.x.data, "x");
        rule.contiguous(weight.x.data, "x");
        rule.require(!weight.x.transposed, "x", "it is stored as (in, out)");
    }
}

void checkAdapter(const OpCheck& rule, const PackWeight& weight) {
    const AdapterView& adapter = weight.adapter;
    const std::int64_t out = weight.out.outFeatures(), in = weight.out.inFeatures();
    if (weight.out.shape.rank() == 3) {
        rule.shape(adapter.a, "adapter.a", {weight.out.experts(), OpCheck::kAny, in});
        rule.shape(adapter.b, "adapter.b", {weight.out.experts(), out, adapter.rank()});
    } else {
        rule.shape(adapter.a, "adapter.a", {OpCheck::kAny, in});
        rule.shape(adapter.b, "adapter.b", {out, adapter.rank()});
    }
    rule.floating(adapter.a, "adapter.a");
    rule.dtype(adapter.b, "adapter.b", adapter.a.dtype);
    rule.contiguous(adapter.a, "adapter.a");
    rule.contiguous(adapter.b, "adapter.b");
}

void checkOne(const OpCheck& rule, const PackWeight& weight) {
    checkWeight(rule, weight.out, "out");
    checkBase(rule, weight);
    rule.require(isFloat(weight.type), "type", "it is not F32, BF16 or F16");
    rule.require(isPackable(weight.out.format), "out", "it is not INT4, FP8 or MXFP4");
    checkPlain(rule, weight.out, "out");
    if (weight.out.format == WeightFormat::Int4) {
        rule.dtype(weight.out.scales, "out.scales", weight.type);
    }
    if (!weight.adapter.empty()) {
        checkAdapter(rule, weight);
    }
    if (!weight.values.empty()) {
        rule.require(weight.values.shape == weight.out.shape, "values", "shape differs from out's");
        rule.floating(weight.values, "values");
        rule.contiguous(weight.values, "values");
        rule.disjoint(weight.values, "values", weight.x.data, "x");
    }
    for (const TensorView* written : {&weight.out.data, &weight.out.scales}) {
        rule.disjoint(*written, "out", weight.x.data, "x");
        rule.disjoint(*written, "out", weight.x.scales, "x");
    }
}

} // namespace

void check(const PackWeights& op) {
    const OpCheck rule(PackWeights::kName);
    std::ranges::for_each(op.weights, [&](const PackWeight& weight) { checkOne(rule, weight); });
    if (!op.changed.empty()) {
        rule.shape(op.changed, "changed", {1});
        rule.dtype(op.changed, "changed", DType::I64);
    }
}

Cost cost(const PackWeights& op, const DeviceTraits&) {
    std::uint64_t read = 0, written = 0, products = 0;
    for (const PackWeight& weight : op.weights) {
        read += weight.x.bytes() + (op.changed.empty() ? 0 : weight.out.data.bytes());
        written += weight.out.bytes() + weight.values.bytes();
        if (!weight.adapter.empty()) {
            read += weight.adapter.a.bytes() + weight.adapter.b.bytes();
            products += static_cast<std::uint64_t>(weight.out.shape.count() * weight.adapter.rank());
        }
    }
    Cost cost = streamingCost(read, written, 2 * products, DType::F32);
    if (!op.weights.empty()) {
        cost.rateClass = weightRateClass(op.weights.front().out.format);
    }
    return cost;
}

std::uint64_t scratch(const PackWeights&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
