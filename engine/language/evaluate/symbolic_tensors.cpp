// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/symbolic_tensors.h"

#include <algorithm>
#include <fmt/format.h>

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

constexpr std::int64_t kMaxArray = 1024; // elements of an array of symbols

DType dtypeOfType(ProgramType type) {
    switch (type) {
    case ProgramType::Bool:
        return DType::Bool;
    case ProgramType::Int32:
        return DType::I32;
    case ProgramType::Int64:
        return DType::I64;
    case ProgramType::Float:
        break;
    }
    return DType::F32;
}

} // namespace

bool isTensorLike(PyValue value) {
    return value.isSymbol() || value.as<PyTensor>() != nullptr || value.as<PyRow>() != nullptr ||
           value.as<PyArray>() != nullptr;
}

TensorDims dimsOf(PyValue value) {
    if (const auto* const tensor = value.as<PyTensor>()) {
        return tensor->dims;
    }
    if (const auto* const row = value.as<PyRow>()) {
        return {row->tensor->dims.begin() + static_cast<std::ptrdiff_t>(row->indices.size()), row->tensor->dims.end()};
    }
    const auto* const symbols = value.as<PyArray>();
    return symbols != nullptr ? symbols->dims : TensorDims{};
}

DType SymbolicTensors::dtypeOf(PyValue value) {
    if (const auto* const tensor = value.as<PyTensor>()) {
        return tensor->dtype;
    }
    if (const auto* const row = value.as<PyRow>()) {
        return row->tensor->dtype;
    }
    if (const auto* const symbols = value.as<PyArray>()) {
        return symbols->narrow != DType::None ? symbols->narrow
               : symbols->elements.empty()    ? DType::F32
                                              : dtypeOfType(evaluation_.builder.type(symbols->elements[0]));
    }
    if (value.isSymbol() && value.narrow() != DType::None) {
        return value.narrow();
    }
    return dtypeOfType(evaluation_.builder.type(node(value)));
}

NodeIndex SymbolicTensors::node(PyValue value) {
    if (value.isSymbol()) {
        return value.node();
    }
    if (value.isNumber()) {
        return constantNode(value);
    }
    if (const auto* const slider = value.as<PySlider>()) {
        return slider->node;
    }
    if (auto* const tensor = value.as<PyTensor>()) {
        return tensorNode(tensor->count() == 1 && tensor->rank() > 0 ? *reshapeTensor(evaluation_.heap, *tensor, {})
                                                                     : *tensor);
    }
    if (value.as<PyArray>() != nullptr || value.as<PyRow>() != nullptr) {
        const PyArray* const symbols = array(value);
        if (symbols->elements.size() == 1) {
            return symbols->elements[0];
        }
        fail(fmt::format("{} where one number is needed; index it or reduce it (.any(), .sum())", pyTypeName(value)));
    }
    fail(fmt::format("{} where a number is needed", pyTypeName(value)));
}

NodeIndex SymbolicTensors::constantNode(PyValue value) {
    switch (value.kind()) {
    case PyValue::Kind::Bool:
        return evaluation_.builder.constant(value.integer() != 0);
    case PyValue::Kind::Int:
        return evaluation_.builder.constant(value.integer());
    default:
        return evaluation_.builder.constant(value.real());
    }
}

NodeIndex SymbolicTensors::tensorNode(PyTensor& tensor) {
    if (tensor.rank() != 0) {
        fail(fmt::format("a tensor of shape {} where one number is needed; index it", tensor.shapeText()));
    }
    if (tensor.literal && tensor.storage) {
        const ProgramConstant value = elementAt(tensor, tensor.offset);
        switch (value.type) {
        case ProgramType::Bool:
            return evaluation_.builder.constant(value.integer != 0);
        case ProgramType::Float:
            return evaluation_.builder.constant(value.real, false);
        default:
            return evaluation_.builder.cast(value.type, evaluation_.builder.constant(value.integer, false));
        }
    }
    return evaluation_.builder.scalar(capture(tensor, {}));
}

std::int32_t SymbolicTensors::capture(PyTensor& tensor, const TensorDims& dims) {
    const std::string base = tensor.name.empty() ? "constant" : tensor.name;
    for (int copy = 1;; ++copy) {
        const std::string name = copy == 1 ? base : fmt::format("{}_{}", base, copy);
        const auto found = captured_.find(name);
        if (found != captured_.end()) {
            const PyTensor& other = *found->second;
            const bool same = other.storage == tensor.storage && other.offset == tensor.offset &&
                              other.dims == tensor.dims && other.strides == tensor.strides &&
                              other.dtype == tensor.dtype && (tensor.storage != nullptr || &other == &tensor);
            if (!same) {
                continue;
            }
        }
        captured_.emplace(name, &tensor);
        kernels::ProgramCapture made;
        made.name = name;
        made.type = programTypeOf(tensor.dtype);
        made.rank = static_cast<int>(dims.size());
        made.differentiable = tensor.gradient && made.type == ProgramType::Float && evaluation_.gradients();
        return evaluation_.builder.capture(made);
    }
}

std::vector<CapturedTensor> SymbolicTensors::captures(const kernels::Program& program) const {
    std::vector<CapturedTensor> made;
    for (const kernels::ProgramCapture& capture : program.captures) {
        const PyTensor& tensor = *captured_.at(capture.name);
        CapturedTensor item;
        item.dtype = tensor.dtype;
        // Dimensions past the third are merged into it: see load().
        TensorDims dims = tensor.dims;
        while (static_cast<int>(dims.size()) > kernels::kMaxCaptureRank) {
            dims[dims.size() - 2] *= dims.back();
            dims.pop_back();
        }
        item.shape = kernels::Shape(dims);
        item.data = bytesOfTensor(tensor);
        made.push_back(std::move(item));
    }
    return made;
}

// Loads have at most three indices: further dimensions are merged into the third, row-major.
NodeIndex SymbolicTensors::load(PyTensor& tensor, std::vector<NodeIndex> indices) {
    TensorDims dims = tensor.dims;
    while (static_cast<int>(dims.size()) > kernels::kMaxCaptureRank) {
        const NodeIndex last = indices.back();
        indices.pop_back();
        const NodeIndex row =
            evaluation_.builder.binary(ProgramOp::Mul, indices.back(), evaluation_.builder.constant(dims.back()));
        indices.back() = evaluation_.builder.binary(ProgramOp::Add, row, last);
        dims[dims.size() - 2] *= dims.back();
        dims.pop_back();
    }
    return evaluation_.builder.load(capture(tensor, dims), indices);
}

PyValue SymbolicTensors::row(PyTensor& tensor, std::vector<NodeIndex> indices) {
    if (static_cast<int>(indices.size()) > tensor.rank()) {
        fail(fmt::format("{} indices for {}, a tensor of shape {}", indices.size(),
                         tensor.name.empty() ? "this" : "'" + tensor.name + "'", tensor.shapeText()));
    }
    for (const NodeIndex index : indices) {
        const ProgramType type = evaluation_.builder.type(index);
        if (type != ProgramType::Int32 && type != ProgramType::Int64) {
            fail(fmt::format("an index must be an integer, not {}; convert it with .int()",
                             kernels::programTypeName(type)));
        }
    }
    if (static_cast<int>(indices.size()) == tensor.rank()) {
        return PyValue::symbol(load(tensor, std::move(indices)), narrowed(tensor.dtype));
    }
    auto* const made = evaluation_.heap.make<PyRow>();
    made->tensor = &tensor;
    made->indices = std::move(indices);
    return made;
}

PyArray* SymbolicTensors::array(PyValue value) {
    if (auto* const made = value.as<PyArray>()) {
        return made;
    }
    auto* const made = evaluation_.heap.make<PyArray>();
    PyTensor* base = value.as<PyTensor>();
    std::vector<NodeIndex> prefix;
    if (const auto* const row = value.as<PyRow>()) {
        base = row->tensor;
        prefix = row->indices;
    }
    if (base == nullptr) {
        made->elements.push_back(node(value));
        return made;
    }
    made->narrow = narrowed(base->dtype);
    made->dims.assign(base->dims.begin() + static_cast<std::ptrdiff_t>(prefix.size()), base->dims.end());
    std::int64_t count = 1;
    for (const std::int64_t dim : made->dims) {
        count *= dim;
        if (count > kMaxArray) {
            fail(fmt::format(
                "a tensor of shape {} would be read whole for each element; at most {} elements are, index it "
                "instead",
                base->shapeText(), kMaxArray));
        }
    }
    if (base->rank() == 0) {
        made->elements.push_back(tensorNode(*base));
        return made;
    }
    evaluation_.steps(count);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<NodeIndex> indices = prefix;
        std::int64_t rest = i;
        indices.resize(prefix.size() + made->dims.size());
        for (std::size_t d = made->dims.size(); d-- > 0;) {
            indices[prefix.size() + d] = evaluation_.builder.constant(rest % made->dims[d]);
            rest /= made->dims[d];
        }
        if (base->literal && prefix.empty()) {
            const PyTensor* const flat = reshapeTensor(evaluation_.heap, *base, {count});
            made->elements.push_back(tensorNode(*selectTensor(evaluation_.heap, *flat, 0, i)));
        } else {
            made->elements.push_back(load(*base, std::move(indices)));
        }
    }
    return made;
}

PyValue SymbolicTensors::fromArray(PyArray* array) {
    return array->dims.empty() ? PyValue::symbol(array->elements.at(0), array->narrow) : PyValue(array);
}

PyValue SymbolicTensors::broadcast(std::span<const PyValue> values,
                                   const std::function<NodeIndex(std::span<const NodeIndex>)>& make) {
    std::vector<const PyArray*> parts;
    TensorDims dims;
    for (const PyValue value : values) {
        parts.push_back(array(value));
        dims = broadcastDims(dims, parts.back()->dims);
    }
    auto* const made = evaluation_.heap.make<PyArray>();
    made->dims = dims;
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) {
        count *= dim;
        if (count > kMaxArray) {
            fail(fmt::format("an array of shape ({}) for each element; at most {} elements are possible",
                             fmt::join(dims, ", "), kMaxArray));
        }
    }
    evaluation_.steps(count);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<NodeIndex> operands;
        for (const PyArray* const part : parts) {
            std::int64_t rest = i;
            std::int64_t at = 0;
            std::int64_t stride = 1;
            for (std::size_t d = 0; d < part->dims.size(); ++d) {
                const std::int64_t extent = dims[dims.size() - 1 - d];
                const std::int64_t own = part->dims[part->dims.size() - 1 - d];
                at += own == 1 ? 0 : rest % extent * stride;
                stride *= own;
                rest /= extent;
            }
            operands.push_back(part->elements[static_cast<std::size_t>(at)]);
        }
        made->elements.push_back(make(operands));
    }
    return fromArray(made);
}

bool SymbolicTensors::needsArray(std::span<const PyValue> values) {
    bool symbols = false;
    bool tensors = false;
    for (const PyValue value : values) {
        if (value.as<PyArray>() != nullptr || value.as<PyRow>() != nullptr) {
            return true;
        }
        const auto* const tensor = value.as<PyTensor>();
        tensors = tensors || (tensor != nullptr && tensor->rank() > 0);
        symbols = symbols || value.isSymbol();
    }
    return symbols && tensors;
}

// Inside a program, captured numbers stay captures: other contents must not make another program.
bool SymbolicTensors::needsSymbol(std::span<const PyValue> values) {
    bool symbols = false;
    for (const PyValue value : values) {
        const auto* const tensor = value.as<PyTensor>();
        if (tensor != nullptr && tensor->rank() > 0) {
            return false;
        }
        symbols =
            symbols || value.isSymbol() ||
            (evaluation_.inProgram && ((tensor != nullptr && !tensor->literal) || value.as<PySlider>() != nullptr));
    }
    return symbols;
}

DType narrowed(DType dtype) {
    return dtype == DType::U8 || dtype == DType::I8 || dtype == DType::I16 ? dtype : DType::None;
}

// PyTorch's promotion: numbers and booleans take the other operands' dtype.
DType SymbolicTensors::narrowOf(std::span<const PyValue> values) {
    DType made = DType::None;
    for (const PyValue value : values) {
        const bool number = value.isNumber() ? value.kind() != PyValue::Kind::Float
                                             : value.isSymbol() && evaluation_.builder.isWeak(value.node()) &&
                                                   evaluation_.builder.type(value.node()) != ProgramType::Float;
        if (number || value.as<PySlider>() != nullptr) {
            continue;
        }
        const DType own = dtypeOf(value);
        if (own == DType::Bool) {
            continue;
        }
        if (narrowed(own) == DType::None) {
            return DType::None;
        }
        made = made == DType::None ? own : promoted(made, own);
    }
    return made;
}

NodeIndex SymbolicTensors::wrapped(DType narrow, NodeIndex value) {
    const auto number = [this](std::int64_t bits) { return evaluation_.builder.constant(bits); };
    if (narrow == DType::U8) {
        return evaluation_.builder.binary(ProgramOp::And, value, number(0xFF));
    }
    const std::int64_t half = narrow == DType::I8 ? 0x80 : 0x8000;
    const NodeIndex moved = evaluation_.builder.binary(ProgramOp::Add, value, number(half));
    return evaluation_.builder.binary(
        ProgramOp::Sub, evaluation_.builder.binary(ProgramOp::And, moved, number(2 * half - 1)), number(half));
}

NodeIndex SymbolicTensors::fitted(ProgramOp op, DType narrow, NodeIndex value) {
    const bool grows = op == ProgramOp::Add || op == ProgramOp::Sub || op == ProgramOp::Mul || op == ProgramOp::Pow ||
                       op == ProgramOp::FloorDiv || op == ProgramOp::ShiftLeft || op == ProgramOp::Neg ||
                       op == ProgramOp::Abs || op == ProgramOp::Not;
    return narrow != DType::None && grows && evaluation_.builder.type(value) == ProgramType::Int32
               ? wrapped(narrow, value)
               : value;
}

PyValue SymbolicTensors::marked(DType narrow, PyValue value) {
    if (narrow == DType::None) {
        return value;
    }
    if (auto* const symbols = value.as<PyArray>()) {
        const bool whole =
            !symbols->elements.empty() && evaluation_.builder.type(symbols->elements[0]) == ProgramType::Int32;
        symbols->narrow = whole ? narrow : DType::None;
        return value;
    }
    const bool whole = value.isSymbol() && evaluation_.builder.type(value.node()) == ProgramType::Int32;
    return whole ? PyValue::symbol(value.node(), narrow) : value;
}

} // namespace vitrine::engine
