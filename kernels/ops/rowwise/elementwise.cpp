// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/rowwise/elementwise.h"

#include "kernels/cpu/row_loop.h"
#include "kernels/ops/common/op_check.h"

namespace vitrine::kernels {

namespace {

void sameShape(const OpCheck& rule, const TensorView& tensor, std::string_view field, const TensorView& other) {
    rule.require(tensor.shape == other.shape, field, "its shape differs from the other tensors'");
    rule.present(tensor, field);
    rule.rowsContiguous(tensor, field);
}

std::uint64_t elements(const TensorView& tensor) {
    return static_cast<std::uint64_t>(tensor.shape.count());
}

} // namespace

void check(const Add& op) {
    const OpCheck rule(Add::kName);
    rule.floating(op.a, "a");
    rule.floating(op.b, "b");
    rule.floating(op.out, "out");
    sameShape(rule, op.a, "a", op.out);
    sameShape(rule, op.b, "b", op.out);
    sameShape(rule, op.out, "out", op.a);
    rule.sameOrDisjoint(op.out, "out", op.a, "a");
    rule.sameOrDisjoint(op.out, "out", op.b, "b");
}

Cost cost(const Add& op, const DeviceTraits&) {
    return streamingCost(op.a.bytes() + op.b.bytes(), op.out.bytes(), elements(op.out), op.out.dtype);
}

std::uint64_t scratch(const Add&, const DeviceTraits&) {
    return 0;
}

void check(const SoftCap& op) {
    const OpCheck rule(SoftCap::kName);
    rule.floating(op.x, "x");
    rule.present(op.x, "x");
    rule.rowsContiguous(op.x, "x");
    rule.require(op.cap > 0, "cap", "it is not positive");
}

Cost cost(const SoftCap& op, const DeviceTraits&) {
    return streamingCost(op.x.bytes(), op.x.bytes(), 8 * elements(op.x), op.x.dtype);
}

std::uint64_t scratch(const SoftCap&, const DeviceTraits&) {
    return 0;
}

void check(const Cast& op) {
    const OpCheck rule(Cast::kName);
    rule.floating(op.x, "x");
    rule.floating(op.out, "out");
    sameShape(rule, op.x, "x", op.out);
    sameShape(rule, op.out, "out", op.x);
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
}

Cost cost(const Cast& op, const DeviceTraits&) {
    return streamingCost(op.x.bytes(), op.out.bytes(), 0, op.out.dtype);
}

std::uint64_t scratch(const Cast&, const DeviceTraits&) {
    return 0;
}

void check(const ScaleRows& op) {
    const OpCheck rule(ScaleRows::kName);
    rule.matrix(op.x, "x", OpCheck::kAny, OpCheck::kAny);
    rule.shape(op.weights, "weights", {op.x.shape[0]});
    rule.dtype(op.weights, "weights", DType::F32);
    rule.contiguous(op.weights, "weights");
    rule.matrix(op.out, "out", op.x.shape[0], op.x.shape[1]);
    rule.sameOrDisjoint(op.out, "out", op.x, "x");
    rule.disjoint(op.out, "out", op.weights, "weights");
}

Cost cost(const ScaleRows& op, const DeviceTraits&) {
    return streamingCost(op.x.bytes() + op.weights.bytes(), op.out.bytes(), elements(op.out), op.out.dtype);
}

std::uint64_t scratch(const ScaleRows&, const DeviceTraits&) {
    return 0;
}

void check(const SetZero& op) {
    const OpCheck rule(SetZero::kName);
    rule.require(op.out.dtype != DType::None, "out", "it has no dtype");
    rule.present(op.out, "out");
    rule.contiguous(op.out, "out");
}

Cost cost(const SetZero& op, const DeviceTraits&) {
    return streamingCost(0, op.out.bytes(), 0, op.out.dtype);
}

std::uint64_t scratch(const SetZero&, const DeviceTraits&) {
    return 0;
}

} // namespace vitrine::kernels
