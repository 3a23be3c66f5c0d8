// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/attention/mod_tensor.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "kernels/ops/floats.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

constexpr int kMaxTensorRank = 8;

std::int64_t wrappedInteger(DType dtype, std::int64_t value) {
    switch (dtype) {
    case DType::Bool:
        return value != 0 ? 1 : 0;
    case DType::U8:
        return static_cast<std::uint8_t>(value);
    case DType::I8:
        return static_cast<std::int8_t>(value);
    case DType::I16:
        return static_cast<std::int16_t>(value);
    case DType::I32:
        return static_cast<std::int32_t>(value);
    default:
        return value;
    }
}

double roundedReal(DType dtype, double value) {
    kernels::roundFloats(dtype, &value, 1);
    return value;
}

ModDims contiguousStrides(const ModDims& dims) {
    ModDims strides(dims.size(), 1);
    for (std::size_t i = dims.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * dims[i];
    }
    return strides;
}

std::int64_t checkedCount(const ModDims& dims) {
    if (dims.size() > static_cast<std::size_t>(kMaxTensorRank)) {
        throw base::BadInput(fmt::format("a tensor of more than {} dimensions", kMaxTensorRank));
    }
    std::int64_t count = 1;
    bool empty = false;
    for (const std::int64_t dim : dims) {
        if (dim < 0) {
            throw base::BadInput(fmt::format("a dimension of {} elements", dim));
        }
        empty = empty || dim == 0;
        // Both factors are at most kMaxModConstants, so the product cannot overflow.
        count *= dim > 0 && dim <= kMaxModConstants ? dim : 1;
        if (dim > kMaxModConstants || count > kMaxModConstants) {
            throw base::BadInput(fmt::format(
                "a tensor of more than {} elements; bind large tensors by a safetensors file", kMaxModConstants));
        }
    }
    return empty ? 0 : count;
}

void needContents(const ModTensor& tensor) {
    if (!tensor.storage) {
        throw base::BadInput(fmt::format("the contents of {} are not known here; bind it by a safetensors file",
                                         tensor.name.empty() ? "this tensor" : "'" + tensor.name + "'"));
    }
}

/// Storage indices, row-major.
std::vector<std::int64_t> walk(const ModDims& dims, const ModDims& strides, std::int64_t offset, std::int64_t count) {
    std::vector<std::int64_t> made;
    made.reserve(static_cast<std::size_t>(count));
    ModDims index(dims.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        made.push_back(offset);
        for (std::size_t d = dims.size(); d-- > 0;) {
            offset += strides[d];
            if (++index[d] < dims[d]) {
                break;
            }
            offset -= strides[d] * dims[d];
            index[d] = 0;
        }
    }
    return made;
}

/// Strides of a view that repeats the tensor over `dims`.
ModDims broadcastStrides(const ModTensor& tensor, const ModDims& dims) {
    ModDims strides(dims.size(), 0);
    const std::size_t extra = dims.size() - tensor.dims.size();
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
        strides[extra + d] = tensor.dims[d] == 1 ? 0 : tensor.strides[d];
    }
    return strides;
}

} // namespace

ProgramType programTypeOf(DType dtype) {
    switch (dtype) {
    case DType::Bool:
        return ProgramType::Bool;
    case DType::I64:
        return ProgramType::Int64;
    case DType::I32:
    case DType::I16:
    case DType::I8:
    case DType::U8:
        return ProgramType::Int32;
    default:
        return ProgramType::Float;
    }
}

bool isRealDtype(DType dtype) {
    return programTypeOf(dtype) == ProgramType::Float;
}

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

ModTensor* newTensor(ModHeap& heap, DType dtype, ModDims dims) {
    const std::int64_t count = checkedCount(dims);
    heap.charge(count);
    auto* const made = heap.make<ModTensor>();
    made->dtype = dtype;
    made->strides = contiguousStrides(dims);
    made->dims = std::move(dims);
    made->storage = std::make_shared<ModStorage>();
    if (made->isReal()) {
        made->storage->reals.resize(static_cast<std::size_t>(count));
    } else {
        made->storage->integers.resize(static_cast<std::size_t>(count));
    }
    return made;
}

ModTensor* scalarTensor(ModHeap& heap, DType dtype, const ProgramConstant& value) {
    ModTensor* const made = newTensor(heap, dtype, {});
    setElement(*made, 0, value);
    return made;
}

ProgramConstant elementAt(const ModTensor& tensor, std::int64_t storageIndex) {
    const auto at = static_cast<std::size_t>(storageIndex);
    ProgramConstant made;
    made.type = programTypeOf(tensor.dtype);
    if (tensor.isReal()) {
        made.real = tensor.storage->reals[at];
    } else {
        made.integer = tensor.storage->integers[at];
    }
    return made;
}

void setElement(ModTensor& tensor, std::int64_t storageIndex, const ProgramConstant& value) {
    const auto at = static_cast<std::size_t>(storageIndex);
    if (tensor.isReal()) {
        tensor.storage->reals[at] = roundedReal(tensor.dtype, value.number());
    } else if (tensor.dtype == DType::Bool) {
        tensor.storage->integers[at] = value.number() != 0 ? 1 : 0;
    } else {
        tensor.storage->integers[at] =
            wrappedInteger(tensor.dtype, kernels::foldCast(ProgramType::Int64, value).integer);
    }
}

std::vector<std::int64_t> offsetsOf(const ModTensor& tensor) {
    needContents(tensor);
    return walk(tensor.dims, tensor.strides, tensor.offset, tensor.count());
}

std::vector<ProgramConstant> elementsOf(const ModTensor& tensor) {
    std::vector<ProgramConstant> made;
    made.reserve(static_cast<std::size_t>(tensor.count()));
    for (const std::int64_t at : offsetsOf(tensor)) {
        made.push_back(elementAt(tensor, at));
    }
    return made;
}

std::vector<std::int64_t> integersOf(const ModTensor& tensor) {
    std::vector<std::int64_t> made;
    for (const ProgramConstant& value : elementsOf(tensor)) {
        made.push_back(kernels::foldCast(ProgramType::Int64, value).integer);
    }
    return made;
}

ModTensor* fromElements(ModHeap& heap, DType dtype, ModDims dims, std::span<const ProgramConstant> elements) {
    ModTensor* const made = newTensor(heap, dtype, std::move(dims));
    for (std::size_t i = 0; i < elements.size(); ++i) {
        setElement(*made, static_cast<std::int64_t>(i), elements[i]);
    }
    return made;
}

ModTensor* fromIntegers(ModHeap& heap, DType dtype, std::span<const std::int64_t> values) {
    ModTensor* const made = newTensor(heap, dtype, {static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) {
        setElement(*made, static_cast<std::int64_t>(i), kernels::intConstant(ProgramType::Int64, values[i]));
    }
    return made;
}

ModDims broadcastDims(const ModDims& a, const ModDims& b) {
    ModDims made(std::max(a.size(), b.size()), 1);
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

// "Type promotion" of PyTorch's tensor attributes page: of tensors with dimensions, of rank 0 and of numbers, a weaker group
// counts only if it is of a higher category (bool, integer, float).
DType promotedOperands(std::span<const ModOperand> operands) {
    const auto category = [](DType dtype) { return isRealDtype(dtype) ? 2 : dtype == DType::Bool ? 0 : 1; };
    const auto groupOf = [](const ModOperand& operand) {
        return operand.tensor == nullptr ? 2 : operand.tensor->rank() == 0 ? 1 : 0;
    };
    DType made = DType::None;
    for (int group = 0; group < 3; ++group) {
        DType best = DType::None;
        for (const ModOperand& operand : operands) {
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

std::vector<std::int64_t> operandOffsets(const ModOperand& operand, const ModDims& dims, std::int64_t count) {
    if (operand.tensor == nullptr) {
        return {};
    }
    needContents(*operand.tensor);
    return walk(dims, broadcastStrides(*operand.tensor, dims), operand.tensor->offset, count);
}

ProgramConstant operandAt(const ModOperand& operand, const std::vector<std::int64_t>& offsets, std::int64_t i) {
    return operand.tensor == nullptr ? operand.number
                                     : elementAt(*operand.tensor, offsets[static_cast<std::size_t>(i)]);
}

ModDims operandDims(const ModOperand& operand) {
    return operand.tensor == nullptr ? ModDims{} : operand.tensor->dims;
}

bool isLiteral(const ModOperand& operand) {
    return operand.tensor == nullptr || operand.tensor->literal;
}

} // namespace

ModTensor* elementwise(ModHeap& heap, ProgramOp op, const ModOperand& a, const ModOperand& b) {
    const std::array<ModOperand, 2> both = {a, b};
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
    ModTensor* const made = newTensor(heap, dtype, broadcastDims(operandDims(a), operandDims(b)));
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

ModTensor* elementwise(ModHeap& heap, ProgramOp op, const ModTensor& a) {
    const bool keeps = op == ProgramOp::Neg || op == ProgramOp::Abs || op == ProgramOp::Sign || op == ProgramOp::Not ||
                       (op >= ProgramOp::Floor && op <= ProgramOp::Trunc);
    const bool rounds = op >= ProgramOp::Floor && op <= ProgramOp::Trunc;
    if (op == ProgramOp::Not && a.isReal()) {
        throw base::BadInput("~ needs booleans or integers, not floats");
    }
    const DType dtype = keeps || a.isReal() ? a.dtype : DType::F32;
    ModTensor* const made = newTensor(heap, dtype, a.dims);
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

ModTensor* whereTensor(ModHeap& heap, const ModTensor& condition, const ModOperand& a, const ModOperand& b) {
    const std::array<ModOperand, 2> both = {a, b};
    const ModDims dims = broadcastDims(condition.dims, broadcastDims(operandDims(a), operandDims(b)));
    ModTensor* const made = newTensor(heap, promotedOperands(both), dims);
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

ModTensor* castTensor(ModHeap& heap, const ModTensor& tensor, DType dtype) {
    ModTensor* const made = newTensor(heap, dtype, tensor.dims);
    made->name = tensor.name;
    made->literal = tensor.literal;
    made->gradient = tensor.gradient && made->isReal();
    std::int64_t i = 0;
    for (const std::int64_t at : offsetsOf(tensor)) {
        setElement(*made, i++, elementAt(tensor, at));
    }
    return made;
}

void assignTensor(ModTensor& target, const ModOperand& value) {
    needContents(target);
    ModDims dims = operandDims(value);
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
        ModTensor narrow;
        narrow.dims = dims;
        narrow.strides = ModDims(value.tensor->strides.end() - static_cast<std::ptrdiff_t>(dims.size()),
                                 value.tensor->strides.end());
        for (const std::int64_t at :
             walk(target.dims, broadcastStrides(narrow, target.dims), value.tensor->offset, target.count())) {
            values.push_back(elementAt(*value.tensor, at));
        }
    }
    std::size_t i = 0;
    for (const std::int64_t at : offsetsOf(target)) {
        setElement(target, at, value.tensor != nullptr ? values[i++] : value.number);
    }
}

std::shared_ptr<const std::vector<std::byte>> bytesOfTensor(const ModTensor& tensor) {
    if (!tensor.storage) {
        return nullptr;
    }
    const std::int64_t count = tensor.count();
    auto made = std::make_shared<std::vector<std::byte>>(kernels::bytesOf(tensor.dtype, count));
    const auto width = static_cast<std::size_t>(kernels::bitsOf(tensor.dtype) / 8);
    std::size_t i = 0;
    for (const std::int64_t at : offsetsOf(tensor)) {
        const ProgramConstant value = elementAt(tensor, at);
        if (tensor.isReal()) {
            kernels::storeFloats(tensor.dtype, &value.real, 1, made->data(), static_cast<std::int64_t>(i));
        } else {
            // Little-endian: the low bytes come first.
            std::memcpy(made->data() + i * width, &value.integer, width);
        }
        ++i;
    }
    return made;
}

ModTensor* tensorOfCapture(ModHeap& heap, const CapturedTensor& captured) {
    const ModDims dims(captured.shape.dims().begin(), captured.shape.dims().end());
    ModTensor* made = nullptr;
    if (!captured.data || captured.shape.count() > kMaxModConstants) {
        made = heap.make<ModTensor>();
        made->dtype = captured.dtype;
        made->dims = dims;
        made->strides = contiguousStrides(dims);
        return made;
    }
    if (captured.data->size() < kernels::bytesOf(captured.dtype, captured.shape.count())) {
        throw base::BadInput("a captured tensor has fewer bytes than its shape says");
    }
    made = newTensor(heap, captured.dtype, dims);
    const std::int64_t count = made->count();
    if (made->isReal()) {
        kernels::loadFloats(captured.dtype, captured.data->data(), 0, count, made->storage->reals.data());
        return made;
    }
    const auto width = static_cast<std::size_t>(kernels::bitsOf(captured.dtype) / 8);
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, captured.data->data() + static_cast<std::size_t>(i) * width, width);
        made->storage->integers[static_cast<std::size_t>(i)] = wrappedInteger(captured.dtype, value);
    }
    return made;
}

// Views.

ModTensor* viewOf(ModHeap& heap, const ModTensor& tensor) {
    auto* const made = heap.make<ModTensor>();
    made->dtype = tensor.dtype;
    made->dims = tensor.dims;
    made->strides = tensor.strides;
    made->offset = tensor.offset;
    made->storage = tensor.storage;
    made->name = tensor.name;
    made->literal = tensor.literal;
    made->gradient = tensor.gradient;
    return made;
}

int wrappedDim(std::int64_t dim, int rank) {
    const int bound = std::max(rank, 1);
    if (dim < -bound || dim >= bound) {
        throw base::BadInput(fmt::format("dimension {} of a tensor that has {}", dim, rank));
    }
    return static_cast<int>(dim < 0 ? dim + bound : dim);
}

ModTensor* reshapeTensor(ModHeap& heap, const ModTensor& tensor, ModDims dims) {
    std::int64_t known = 1;
    std::optional<std::size_t> open;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == -1 && !open) {
            open = i;
        } else {
            const bool fits = dims[i] >= 0 && dims[i] <= kMaxModConstants;
            known *= fits ? dims[i] : 1;
            if (!fits || known > kMaxModConstants) {
                throw base::BadInput(fmt::format("a dimension of {} elements", dims[i]));
            }
        }
    }
    if (open && known != 0) {
        dims[*open] = tensor.count() / known;
        known *= dims[*open];
    }
    if (known != tensor.count() || (open && dims[*open] < 0)) {
        throw base::BadInput(
            fmt::format("a tensor of shape {} does not fit shape ({})", tensor.shapeText(), fmt::join(dims, ", ")));
    }
    if (tensor.strides == contiguousStrides(tensor.dims)) {
        ModTensor* const made = viewOf(heap, tensor);
        made->strides = contiguousStrides(dims);
        made->dims = std::move(dims);
        return made;
    }
    ModTensor* const made = castTensor(heap, tensor, tensor.dtype);
    made->strides = contiguousStrides(dims);
    made->dims = std::move(dims);
    return made;
}

ModTensor* permuteTensor(ModHeap& heap, const ModTensor& tensor, const ModDims& order) {
    ModTensor* const made = viewOf(heap, tensor);
    std::vector<bool> seen(tensor.dims.size(), false);
    if (order.size() != tensor.dims.size()) {
        throw base::BadInput(fmt::format("{} dimensions for a tensor that has {}", order.size(), tensor.rank()));
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        const auto from = static_cast<std::size_t>(wrappedDim(order[i], tensor.rank()));
        if (seen[from]) {
            throw base::BadInput("a dimension is named twice");
        }
        seen[from] = true;
        made->dims[i] = tensor.dims[from];
        made->strides[i] = tensor.strides[from];
    }
    return made;
}

ModTensor* expandTensor(ModHeap& heap, const ModTensor& tensor, const ModDims& dims) {
    if (dims.size() < tensor.dims.size()) {
        throw base::BadInput(fmt::format("{} dimensions for a tensor that has {}", dims.size(), tensor.rank()));
    }
    ModDims wanted = dims;
    const std::size_t extra = dims.size() - tensor.dims.size();
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
        if (wanted[extra + i] == -1) {
            wanted[extra + i] = tensor.dims[i];
        }
    }
    if (broadcastDims(wanted, tensor.dims) != wanted) {
        throw base::BadInput(
            fmt::format("a tensor of shape {} does not expand to ({})", tensor.shapeText(), fmt::join(dims, ", ")));
    }
    heap.charge(checkedCount(wanted));
    ModTensor* const made = viewOf(heap, tensor);
    made->strides = broadcastStrides(tensor, wanted);
    made->dims = wanted;
    return made;
}

ModTensor* diagonalTensor(ModHeap& heap, const ModTensor& tensor, std::int64_t offset, int dim1, int dim2) {
    if (tensor.rank() < 2 || dim1 == dim2) {
        throw base::BadInput("a diagonal needs two dimensions");
    }
    const auto a = static_cast<std::size_t>(dim1);
    const auto b = static_cast<std::size_t>(dim2);
    offset = std::clamp(offset, -tensor.dims[a], tensor.dims[b]);
    const std::int64_t length = std::max<std::int64_t>(0, std::min(tensor.dims[a] + std::min<std::int64_t>(offset, 0),
                                                                   tensor.dims[b] - std::max<std::int64_t>(offset, 0)));
    ModTensor* const made = viewOf(heap, tensor);
    if (length > 0) {
        made->offset += offset >= 0 ? offset * tensor.strides[b] : -offset * tensor.strides[a];
    }
    const std::int64_t step = tensor.strides[a] + tensor.strides[b];
    for (const std::size_t gone : {std::max(a, b), std::min(a, b)}) {
        made->dims.erase(made->dims.begin() + static_cast<std::ptrdiff_t>(gone));
        made->strides.erase(made->strides.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    made->dims.push_back(length);
    made->strides.push_back(step);
    return made;
}

ModTensor* selectTensor(ModHeap& heap, const ModTensor& tensor, int dim, std::int64_t index) {
    const auto d = static_cast<std::size_t>(dim);
    const std::int64_t extent = tensor.dims.at(d);
    if (index < -extent || index >= extent) {
        throw base::BadInput(fmt::format("index {} of a dimension of {} elements", index, extent));
    }
    ModTensor* const made = viewOf(heap, tensor);
    made->offset += (index < 0 ? index + extent : index) * tensor.strides[d];
    made->dims.erase(made->dims.begin() + dim);
    made->strides.erase(made->strides.begin() + dim);
    return made;
}

ModTensor* sliceTensor(ModHeap& heap, const ModTensor& tensor, int dim, std::int64_t start, std::int64_t step,
                       std::int64_t count) {
    ModTensor* const made = viewOf(heap, tensor);
    const auto d = static_cast<std::size_t>(dim);
    made->offset += count > 0 ? start * tensor.strides[d] : 0;
    made->dims[d] = count;
    made->strides[d] *= step;
    return made;
}

ModTensor* unsqueezeTensor(ModHeap& heap, const ModTensor& tensor, int dim) {
    ModTensor* const made = viewOf(heap, tensor);
    made->dims.insert(made->dims.begin() + dim, 1);
    made->strides.insert(made->strides.begin() + dim, 0);
    static_cast<void>(checkedCount(made->dims));
    return made;
}

ModTensor* squeezeTensor(ModHeap& heap, const ModTensor& tensor, std::optional<int> dim) {
    ModTensor* const made = viewOf(heap, tensor);
    for (int d = tensor.rank() - 1; d >= 0; --d) {
        if (tensor.dims[static_cast<std::size_t>(d)] == 1 && (!dim || *dim == d)) {
            made->dims.erase(made->dims.begin() + d);
            made->strides.erase(made->strides.begin() + d);
        }
    }
    return made;
}

} // namespace vitrine::engine
