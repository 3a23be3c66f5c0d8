// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Values as nodes of the program: constants, loads of captured tensors, small arrays.
#include <algorithm>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

constexpr std::int64_t kMaxArray = 1024; // elements of an array of symbols

} // namespace

ModNode ModEvaluator::constantNode(ModValue value) {
    switch (value.kind()) {
    case ModValue::Kind::Bool:
        return builder_.constant(value.integer() != 0);
    case ModValue::Kind::Int:
        return builder_.constant(value.integer());
    default:
        return builder_.constant(value.real());
    }
}

std::int32_t ModEvaluator::capture(ModTensor& tensor, const ModDims& dims) {
    const std::string base = tensor.name.empty() ? "constant" : tensor.name;
    for (int copy = 1;; ++copy) {
        const std::string name = copy == 1 ? base : fmt::format("{}_{}", base, copy);
        const auto found = captured_.find(name);
        if (found != captured_.end()) {
            const ModTensor& other = *found->second;
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
        made.differentiable = tensor.gradient && made.type == ProgramType::Float && gradients();
        return builder_.capture(made);
    }
}

ModNode ModEvaluator::tensorNode(ModTensor& tensor) {
    if (tensor.rank() != 0) {
        fail(fmt::format("a tensor of shape {} where one number is needed; index it", tensor.shapeText()));
    }
    if (tensor.literal && tensor.storage) {
        const ProgramConstant value = elementAt(tensor, tensor.offset);
        switch (value.type) {
        case ProgramType::Bool:
            return builder_.constant(value.integer != 0);
        case ProgramType::Float:
            return builder_.constant(value.real, false);
        default:
            return builder_.cast(value.type, builder_.constant(value.integer, false));
        }
    }
    return builder_.scalar(capture(tensor, {}));
}

// Loads have at most three indices: further dimensions are merged into the third, row-major.
ModNode ModEvaluator::load(ModTensor& tensor, std::vector<ModNode> indices) {
    ModDims dims = tensor.dims;
    while (static_cast<int>(dims.size()) > kernels::kMaxCaptureRank) {
        const ModNode last = indices.back();
        indices.pop_back();
        const ModNode row = builder_.binary(ProgramOp::Mul, indices.back(), builder_.constant(dims.back()));
        indices.back() = builder_.binary(ProgramOp::Add, row, last);
        dims[dims.size() - 2] *= dims.back();
        dims.pop_back();
    }
    return builder_.load(capture(tensor, dims), indices);
}

ModValue ModEvaluator::row(ModTensor& tensor, std::vector<ModNode> indices) {
    if (static_cast<int>(indices.size()) > tensor.rank()) {
        fail(fmt::format("{} indices for {}, a tensor of shape {}", indices.size(),
                         tensor.name.empty() ? "this" : "'" + tensor.name + "'", tensor.shapeText()));
    }
    for (const ModNode index : indices) {
        const ProgramType type = builder_.type(index);
        if (type != ProgramType::Int32 && type != ProgramType::Int64) {
            fail(fmt::format("an index must be an integer, not {}; convert it with .int()",
                             kernels::programTypeName(type)));
        }
    }
    if (static_cast<int>(indices.size()) == tensor.rank()) {
        return ModValue::symbol(load(tensor, std::move(indices)), narrowed(tensor.dtype));
    }
    auto* const made = heap_.make<ModRow>();
    made->tensor = &tensor;
    made->indices = std::move(indices);
    return made;
}

ModNode ModEvaluator::node(ModValue value) {
    if (value.isSymbol()) {
        return value.node();
    }
    if (value.isNumber()) {
        return constantNode(value);
    }
    if (const auto* const slider = value.as<ModSlider>()) {
        return slider->node;
    }
    if (auto* const tensor = value.as<ModTensor>()) {
        return tensorNode(tensor->count() == 1 && tensor->rank() > 0 ? *reshapeTensor(heap_, *tensor, {}) : *tensor);
    }
    if (value.as<ModArray>() != nullptr || value.as<ModRow>() != nullptr) {
        const ModArray* const symbols = array(value);
        if (symbols->elements.size() == 1) {
            return symbols->elements[0];
        }
        fail(fmt::format("{} where one number is needed; index it or reduce it (.any(), .sum())", modTypeName(value)));
    }
    fail(fmt::format("{} where a number is needed", modTypeName(value)));
}

ModArray* ModEvaluator::array(ModValue value) {
    if (auto* const made = value.as<ModArray>()) {
        return made;
    }
    auto* const made = heap_.make<ModArray>();
    ModTensor* base = value.as<ModTensor>();
    std::vector<ModNode> prefix;
    if (const auto* const row = value.as<ModRow>()) {
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
    steps(count);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<ModNode> indices = prefix;
        std::int64_t rest = i;
        indices.resize(prefix.size() + made->dims.size());
        for (std::size_t d = made->dims.size(); d-- > 0;) {
            indices[prefix.size() + d] = builder_.constant(rest % made->dims[d]);
            rest /= made->dims[d];
        }
        if (base->literal && prefix.empty()) {
            const ModTensor* const flat = reshapeTensor(heap_, *base, {count});
            made->elements.push_back(tensorNode(*selectTensor(heap_, *flat, 0, i)));
        } else {
            made->elements.push_back(load(*base, std::move(indices)));
        }
    }
    return made;
}

ModValue ModEvaluator::fromArray(ModArray* array) {
    return array->dims.empty() ? ModValue::symbol(array->elements.at(0), array->narrow) : ModValue(array);
}

bool ModEvaluator::isTensorLike(ModValue value) const {
    return value.isSymbol() || value.as<ModTensor>() != nullptr || value.as<ModRow>() != nullptr ||
           value.as<ModArray>() != nullptr;
}

bool ModEvaluator::needsArray(std::span<const ModValue> values) {
    bool symbols = false;
    bool tensors = false;
    for (const ModValue value : values) {
        if (value.as<ModArray>() != nullptr || value.as<ModRow>() != nullptr) {
            return true;
        }
        const auto* const tensor = value.as<ModTensor>();
        tensors = tensors || (tensor != nullptr && tensor->rank() > 0);
        symbols = symbols || value.isSymbol();
    }
    return symbols && tensors;
}

// Inside a program, captured numbers stay captures: other contents must not make another program.
bool ModEvaluator::needsSymbol(std::span<const ModValue> values) {
    bool symbols = false;
    for (const ModValue value : values) {
        const auto* const tensor = value.as<ModTensor>();
        if (tensor != nullptr && tensor->rank() > 0) {
            return false;
        }
        symbols = symbols || value.isSymbol() ||
                  (inProgram_ && ((tensor != nullptr && !tensor->literal) || value.as<ModSlider>() != nullptr));
    }
    return symbols;
}

DType ModEvaluator::narrowed(DType dtype) {
    return dtype == DType::U8 || dtype == DType::I8 || dtype == DType::I16 ? dtype : DType::None;
}

// PyTorch's promotion: numbers and booleans take the other operands' dtype.
DType ModEvaluator::narrowOf(std::span<const ModValue> values) {
    DType made = DType::None;
    for (const ModValue value : values) {
        const bool number = value.isNumber() ? value.kind() != ModValue::Kind::Float
                                             : value.isSymbol() && builder_.isWeak(value.node()) &&
                                                   builder_.type(value.node()) != ProgramType::Float;
        if (number || value.as<ModSlider>() != nullptr) {
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

ModNode ModEvaluator::wrapped(DType narrow, ModNode value) {
    const auto number = [this](std::int64_t bits) { return builder_.constant(bits); };
    if (narrow == DType::U8) {
        return builder_.binary(ProgramOp::And, value, number(0xFF));
    }
    const std::int64_t half = narrow == DType::I8 ? 0x80 : 0x8000;
    const ModNode moved = builder_.binary(ProgramOp::Add, value, number(half));
    return builder_.binary(ProgramOp::Sub, builder_.binary(ProgramOp::And, moved, number(2 * half - 1)), number(half));
}

ModNode ModEvaluator::fitted(ProgramOp op, DType narrow, ModNode value) {
    const bool grows = op == ProgramOp::Add || op == ProgramOp::Sub || op == ProgramOp::Mul || op == ProgramOp::Pow ||
                       op == ProgramOp::FloorDiv || op == ProgramOp::ShiftLeft || op == ProgramOp::Neg ||
                       op == ProgramOp::Abs || op == ProgramOp::Not;
    return narrow != DType::None && grows && builder_.type(value) == ProgramType::Int32 ? wrapped(narrow, value)
                                                                                        : value;
}

ModValue ModEvaluator::marked(DType narrow, ModValue value) {
    if (narrow == DType::None) {
        return value;
    }
    if (auto* const symbols = value.as<ModArray>()) {
        const bool whole = !symbols->elements.empty() && builder_.type(symbols->elements[0]) == ProgramType::Int32;
        symbols->narrow = whole ? narrow : DType::None;
        return value;
    }
    const bool whole = value.isSymbol() && builder_.type(value.node()) == ProgramType::Int32;
    return whole ? ModValue::symbol(value.node(), narrow) : value;
}

ModValue ModEvaluator::arrays(std::span<const ModValue> values,
                              const std::function<ModNode(std::span<const ModNode>)>& make) {
    std::vector<const ModArray*> parts;
    ModDims dims;
    for (const ModValue value : values) {
        parts.push_back(array(value));
        dims = broadcastDims(dims, parts.back()->dims);
    }
    auto* const made = heap_.make<ModArray>();
    made->dims = dims;
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) {
        count *= dim;
        if (count > kMaxArray) {
            fail(fmt::format("an array of shape ({}) for each element; at most {} elements are possible",
                             fmt::join(dims, ", "), kMaxArray));
        }
    }
    steps(count);
    for (std::int64_t i = 0; i < count; ++i) {
        std::vector<ModNode> operands;
        for (const ModArray* const part : parts) {
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

} // namespace vitrine::engine
