// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/elementwise_operations.h"

#include <array>
#include <fmt/format.h>

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

ProgramConstant constantOf(PyValue value) {
    switch (value.kind()) {
    case PyValue::Kind::Bool:
        return kernels::boolConstant(value.integer() != 0);
    case PyValue::Kind::Int:
        return kernels::intConstant(ProgramType::Int64, value.integer());
    default:
        return kernels::floatConstant(value.real());
    }
}

PyValue numberOf(const ProgramConstant& constant) {
    switch (constant.type) {
    case ProgramType::Bool:
        return PyValue::boolean(constant.integer != 0);
    case ProgramType::Float:
        return PyValue::real(constant.real);
    default:
        return PyValue::integer(constant.integer);
    }
}

} // namespace

TensorOperand ElementwiseOperations::operand(PyValue value) {
    if (const auto* const tensor = value.as<PyTensor>()) {
        return {tensor, {}};
    }
    value = convert_.concrete(value);
    if (!value.isNumber()) {
        fail(fmt::format("{} where a number or a tensor is needed", pyTypeName(value)));
    }
    return {nullptr, constantOf(value)};
}

PyValue ElementwiseOperations::sliderResult(PyValue number, NodeIndex node) {
    auto* const made = evaluation_.heap.make<PySlider>();
    made->value = number;
    made->node = node;
    return made;
}

PyValue ElementwiseOperations::binary(ProgramOp op, PyValue a, PyValue b) {
    const std::array<PyValue, 2> both = {a, b};
    const bool many = symbols_.needsArray(both);
    if (many || symbols_.needsSymbol(both)) {
        const DType narrow = symbols_.narrowOf(both);
        const auto make = [&](std::span<const NodeIndex> nodes) {
            return symbols_.fitted(op, narrow, evaluation_.builder.binary(op, nodes[0], nodes[1]));
        };
        if (many) {
            return symbols_.marked(narrow, symbols_.broadcast(both, make));
        }
        const std::array<NodeIndex, 2> nodes = {symbols_.node(a), symbols_.node(b)};
        return symbols_.marked(narrow, PyValue::symbol(make(nodes)));
    }
    if (a.as<PyTensor>() != nullptr || b.as<PyTensor>() != nullptr) {
        return elementwise(evaluation_.heap, op, operand(a), operand(b));
    }
    const auto* const left = a.as<PySlider>();
    const auto* const right = b.as<PySlider>();
    if (left != nullptr || right != nullptr) {
        const PyValue x = left != nullptr ? left->value : a;
        const PyValue y = right != nullptr ? right->value : b;
        if (x.isNumber() && y.isNumber()) {
            const PyValue number = numberOf(kernels::foldPython(op, constantOf(x), constantOf(y)));
            return sliderResult(number, evaluation_.builder.binary(op, symbols_.node(a), symbols_.node(b)));
        }
    }
    if (!a.isNumber() || !b.isNumber()) {
        fail(fmt::format("this operation does not take {} and {}", pyTypeName(a), pyTypeName(b)));
    }
    return numberOf(kernels::foldPython(op, constantOf(a), constantOf(b)));
}

PyValue ElementwiseOperations::unary(ProgramOp op, PyValue a) {
    const std::array<PyValue, 1> one = {a};
    const bool many = symbols_.needsArray(one);
    if (many || symbols_.needsSymbol(one)) {
        const DType narrow = symbols_.narrowOf(one);
        const auto make = [&](std::span<const NodeIndex> nodes) {
            return symbols_.fitted(op, narrow, evaluation_.builder.unary(op, nodes[0]));
        };
        if (many) {
            return symbols_.marked(narrow, symbols_.broadcast(one, make));
        }
        const std::array<NodeIndex, 1> nodes = {symbols_.node(a)};
        return symbols_.marked(narrow, PyValue::symbol(make(nodes)));
    }
    if (const auto* const tensor = a.as<PyTensor>()) {
        return elementwise(evaluation_.heap, op, *tensor);
    }
    if (const auto* const slider = a.as<PySlider>()) {
        return sliderResult(unary(op, slider->value), evaluation_.builder.unary(op, slider->node));
    }
    if (!a.isNumber()) {
        fail(fmt::format("this operation does not take {}", pyTypeName(a)));
    }
    ProgramConstant value = constantOf(a);
    const bool keeps = op == ProgramOp::Neg || op == ProgramOp::Abs || op == ProgramOp::Sign || op == ProgramOp::Not;
    if (op == ProgramOp::Not && value.type == ProgramType::Float) {
        fail("~ needs a boolean or an integer, not a float");
    }
    if (!keeps) {
        value = kernels::foldCast(ProgramType::Float, value);
    } else if (value.type == ProgramType::Bool) {
        value = kernels::foldCast(ProgramType::Int64, value); // ~True is -2 in Python, -True is -1
    }
    return numberOf(kernels::foldUnary(op, value));
}

PyValue ElementwiseOperations::select(PyValue condition, PyValue a, PyValue b) {
    const std::array<PyValue, 3> all = {condition, a, b};
    const std::array<PyValue, 2> both = {a, b};
    if (symbols_.needsArray(all)) {
        return symbols_.marked(symbols_.narrowOf(both), symbols_.broadcast(all, [&](std::span<const NodeIndex> nodes) {
            return evaluation_.builder.select(nodes[0], nodes[1], nodes[2]);
        }));
    }
    if (symbols_.needsSymbol(all)) {
        const NodeIndex which = symbols_.node(condition);
        const NodeIndex yes = symbols_.node(a);
        const NodeIndex no = symbols_.node(b);
        return symbols_.marked(symbols_.narrowOf(both), PyValue::symbol(evaluation_.builder.select(which, yes, no)));
    }
    if (const auto* const tensor = condition.as<PyTensor>()) {
        return whereTensor(evaluation_.heap, *tensor, operand(a), operand(b));
    }
    const bool which = convert_.truth(condition);
    if (a.as<PyTensor>() != nullptr || b.as<PyTensor>() != nullptr) {
        PyTensor* const constant = scalarTensor(evaluation_.heap, DType::Bool, kernels::boolConstant(which));
        constant->literal = true;
        return whereTensor(evaluation_.heap, *constant, operand(a), operand(b));
    }
    return which ? a : b;
}

PyValue ElementwiseOperations::cast(DType dtype, PyValue value) {
    const std::array<PyValue, 1> one = {value};
    const ProgramType type = programTypeOf(dtype);
    const bool many = symbols_.needsArray(one);
    if (many || symbols_.needsSymbol(one)) {
        const DType narrow = narrowed(dtype);
        const bool changes =
            narrow != DType::None && symbols_.dtypeOf(value) != dtype && symbols_.dtypeOf(value) != DType::Bool;
        const auto make = [&](std::span<const NodeIndex> nodes) {
            const NodeIndex made = evaluation_.builder.cast(type, nodes[0]);
            return changes ? symbols_.wrapped(narrow, made) : made;
        };
        if (many) {
            const PyValue made = symbols_.broadcast(one, make);
            if (auto* const symbols = made.as<PyArray>()) {
                symbols->narrow = narrow;
            }
            return made;
        }
        const std::array<NodeIndex, 1> nodes = {symbols_.node(value)};
        return PyValue::symbol(make(nodes), narrow);
    }
    if (const auto* const tensor = value.as<PyTensor>()) {
        return tensor->dtype == dtype ? value : PyValue(castTensor(evaluation_.heap, *tensor, dtype));
    }
    if (const auto* const slider = value.as<PySlider>()) {
        return sliderResult(cast(dtype, slider->value), evaluation_.builder.cast(type, slider->node));
    }
    if (!value.isNumber()) {
        fail(fmt::format("{} cannot be converted to a number", pyTypeName(value)));
    }
    const ProgramType wide = type == ProgramType::Int32 ? ProgramType::Int64 : type;
    return numberOf(kernels::foldCast(wide, constantOf(value)));
}

PyValue ElementwiseOperations::logicalNot(PyValue value) {
    const std::array<PyValue, 1> one = {value};
    if (symbols_.needsSymbol(one)) {
        return PyValue::symbol(evaluation_.builder.unary(
            ProgramOp::Not, evaluation_.builder.cast(ProgramType::Bool, symbols_.node(value))));
    }
    return PyValue::boolean(!convert_.truth(value));
}

} // namespace vitrine::engine
