// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Type promotion, element-wise operations and assignment of constant tensors.
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/values/strides.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

DType promoted(DType a, DType b) {
    if (a == b) {
        return a;
    }
    const bool realA = isRealDtype(a);
    const bool realB = isRealDtype(b);
    if (realA != realB) {
        return realA ? a : b;
    }
    if (realA) {
        const auto bits = [](DType dtype) { return kernels::bitsOf(dtype); };
        return bits(a) == bits(b) ? DType::F32 : bits(a) > bits(b) ? a : b; // bfloat16 with float16
    }
    if (a == DType::Bool || b == DType::Bool) {
        return a == DType::Bool ? b : a;
    }
    const int wide = std::max(kernels::bitsOf(a), kernels::bitsOf(b));
    if (wide == 8) {
        return DType::I16; // uint8 with int8
    }
    return kernels::bitsOf(a) == wide ? a : b;
}

TensorDims broadcastDims(const TensorDims& a, const TensorDims& b) {
    TensorDims made(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < made.size(); ++i) {
        const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
        const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (left != right && left != 1 && right != 1) {
            throw base::BadInput(
                fmt::format("shapes ({}) and ({}) do not broadcast", fmt::join(a, ", "), fmt::join(b, ", ")));
        }
        made[made.size() - 1 - i] = left == 1 ? right : left;
    }
    return made;
}

// "Type promotion" of PyTorch's tensor attributes page: of tensors with dimensions, of rank 0 and of numbers, a weaker
// group counts only if it is of a higher category (bool, integer, float).
DType promotedOperands(std::span<const TensorOperand> operands) {
    const auto category = [](DType dtype) { return isRealDtype(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; };
    const auto groupOf = [](const TensorOperand& operand) {
        return operand.tensor == nullptr ? 2 : operand.tensor->rank() == 0 ? 1 : 0;
    };
    DType made = DType::None;
    for (int group = 0; group < 3; ++group) {
        DType best = DType::None;
        for (const TensorOperand& operand : operands) {
            if (groupOf(operand) != group) {
                continue;
            }
            DType dtype = DType::I64;
            if (operand.tensor != nullptr) {
                dtype = operand.tensor->dtype;
            } else if (operand.number.type == ProgramType::Float) {
                dtype = DType::F32;
            } else if (operand.number.type == ProgramType::Bool) {
                dtype = DType::Bool;
            }
            best = best == DType::None ? dtype : promoted(best, dtype);
        }
        if (best != DType::None && (made == DType::None || category(best) > category(made))) {
            made = best;
        }
    }
    return made;
}

namespace {

bool isComparison(ProgramOp op) {
    return op == ProgramOp::Lt || op == ProgramOp::Le || op == ProgramOp::Eq || op == ProgramOp::Ne;
}

std::vector<std::int64_t> operandOffsets(const TensorOperand& operand, const TensorDims& dims, std::int64_t count) {
    if (operand.tensor == nullptr) {
        return {};
    }
    needContents(*operand.tensor);
    return storageIndices(dims, broadcastStrides(*operand.tensor, dims), operand.tensor->offset, count);
}

ProgramConstant operandAt(const TensorOperand& operand, const std::vector<std::int64_t>& offsets, std::int64_t i) {
    return operand.tensor == nullptr ? operand.number
                                     : elementAt(*operand.tensor, offsets[static_cast<std::size_t>(i)]);
}

TensorDims operandDims(const TensorOperand& operand) {
    return operand.tensor == nullptr ? TensorDims{} : operand.tensor->dims;
}

bool isLiteral(const TensorOperand& operand) {
    return operand.tensor == nullptr || operand.tensor->literal;
}

} // namespace

PyTensor* elementwise(PyHeap& heap, ProgramOp op, const TensorOperand& a, const TensorOperand& b) {
    const std::array<TensorOperand, 2> both = {a, b};
    DType common = promotedOperands(both);
    const bool bits = op == ProgramOp::And || op == ProgramOp::Or || op == ProgramOp::Xor;
    if ((bits || op == ProgramOp::ShiftLeft || op == ProgramOp::ShiftRight) && isRealDtype(common)) {
        throw base::BadInput(
            "operations on bits need booleans or integers, not floats; put comparisons in parentheses");
    }
    if ((op == ProgramOp::Div || op == ProgramOp::Atan2) && !isRealDtype(common)) {
        common = DType::F32;
    }
    const DType dtype = isComparison(op) ? DType::Bool : common;
    PyTensor* const made = newTensor(heap, dtype, broadcastDims(operandDims(a), operandDims(b)));
    made->literal = isLiteral(a) && isLiteral(b);
    const ProgramType type = isRealDtype(common)             ? ProgramType::Float
                             : common == DType::Bool && bits ? ProgramType::Bool
                                                             : ProgramType::Int64;
    const std::int64_t count = made->count();
    const std::vector<std::int64_t> left = operandOffsets(a, made->dims, count);
    const std::vector<std::int64_t> right = operandOffsets(b, made->dims, count);
    for (std::int64_t i = 0; i < count; ++i) {
        const ProgramConstant x = kernels::foldCast(type, operandAt(a, left, i));
        const ProgramConstant y = kernels::foldCast(type, operandAt(b, right, i));
        setElement(*made, i, kernels::foldTyped(op, x, y));
    }
    made->gradient =
        made->isReal() && ((a.tensor != nullptr && a.tensor->gradient) || (b.tensor != nullptr && b.tensor->gradient));
    return made;
}

PyTensor* elementwise(PyHeap& heap, ProgramOp op, const PyTensor& a) {
    const bool keeps = op == ProgramOp::Neg || op == ProgramOp::Abs || op == ProgramOp::Sign || op == ProgramOp::Not ||
                       (op >= ProgramOp::Floor && op <= ProgramOp::Trunc);
    const bool rounds = op >= ProgramOp::Floor && op <= ProgramOp::Trunc;
    if (op == ProgramOp::Not && a.isReal()) {
        throw base::BadInput("~ needs booleans or integers, not floats");
    }
    const DType dtype = keeps || a.isReal() ? a.dtype : DType::F32;
    PyTensor* const made = newTensor(heap, dtype, a.dims);
    made->literal = a.literal;
    made->gradient = a.gradient;
    std::int64_t i = 0;
    for (const std::int64_t at : offsetsOf(a)) {
        ProgramConstant value = elementAt(a, at);
        if (!(rounds && !a.isReal())) {
            value = value.type == ProgramType::Int32 ? kernels::foldCast(ProgramType::Int64, value) : value;
            value = keeps ? value : kernels::foldCast(ProgramType::Float, value);
            value = kernels::foldUnary(op, value);
        }
        setElement(*made, i++, value);
    }
    return made;
}

PyTensor* whereTensor(PyHeap& heap, const PyTensor& condition, const TensorOperand& a, const TensorOperand& b) {
    const std::array<TensorOperand, 2> both = {a, b};
    const TensorDims dims = broadcastDims(condition.dims, broadcastDims(operandDims(a), operandDims(b)));
    PyTensor* const made = newTensor(heap, promotedOperands(both), dims);
    made->literal = condition.literal && isLiteral(a) && isLiteral(b);
    const std::int64_t count = made->count();
    const std::vector<std::int64_t> chosen = operandOffsets({&condition, {}}, dims, count);
    const std::vector<std::int64_t> left = operandOffsets(a, dims, count);
    const std::vector<std::int64_t> right = operandOffsets(b, dims, count);
    for (std::int64_t i = 0; i < count; ++i) {
        const bool which = elementAt(condition, chosen[static_cast<std::size_t>(i)]).number() != 0;
        setElement(*made, i, which ? operandAt(a, left, i) : operandAt(b, right, i));
    }
    return made;
}

PyTensor* castTensor(PyHeap& heap, const PyTensor& tensor, DType dtype) {
    PyTensor* const made = newTensor(heap, dtype, tensor.dims);
    made->name = tensor.name;
    made->literal = tensor.literal;
    made->gradient = tensor.gradient && made->isReal();
    std::int64_t i = 0;
    for (const std::int64_t at : offsetsOf(tensor)) {
        setElement(*made, i++, elementAt(tensor, at));
    }
    return made;
}

void assignTensor(PyTensor& target, const TensorOperand& value) {
    needContents(target);
    TensorDims dims = operandDims(value);
    while (dims.size() > target.dims.size() && dims.front() == 1) {
        dims.erase(dims.begin());
    }
    if (broadcastDims(target.dims, dims) != target.dims) {
        throw base::BadInput(fmt::format("a value of shape ({}) does not fit a place of shape {}",
                                         fmt::join(dims, ", "), target.shapeText()));
    }
    // A copy first: the value may be a view of the target.
    std::vector<ProgramConstant> values;
    if (value.tensor != nullptr) {
        needContents(*value.tensor);
        PyTensor narrow;
        narrow.dims = dims;
        narrow.strides = TensorDims(value.tensor->strides.end() - static_cast<std::ptrdiff_t>(dims.size()),
                                    value.tensor->strides.end());
        for (const std::int64_t at :
             storageIndices(target.dims, broadcastStrides(narrow, target.dims), value.tensor->offset, target.count())) {
            values.push_back(elementAt(*value.tensor, at));
        }
    }
    std::size_t i = 0;
    for (const std::int64_t at : offsetsOf(target)) {
        setElement(target, at, value.tensor != nullptr ? values[i++] : value.number);
    }
}

} // namespace vitrine::engine
