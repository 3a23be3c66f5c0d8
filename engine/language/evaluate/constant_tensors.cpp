// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/constant_tensors.h"

#include <fmt/format.h>

#include "engine/language/evaluate/containers.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramType;

/// Shape and elements of nested lists.
struct ConstantTensors::Flattened {
    TensorDims dims;
    std::vector<ProgramConstant> elements;
    DType dtype = DType::None; ///< that the elements have together
};

void ConstantTensors::flatten(PyValue value, std::size_t depth, Flattened& made) {
    TensorDims& dims = made.dims;
    if (const auto* const items = value.as<PySequence>(); items != nullptr || value.as<PyRangeValue>() != nullptr) {
        const std::vector<PyValue> parts = containers_.iterate(value);
        if (depth >= 8) {
            fail("lists nested deeper than a tensor's dimensions");
        }
        if (dims.size() == depth) {
            dims.push_back(static_cast<std::int64_t>(parts.size()));
        } else if (dims[depth] != static_cast<std::int64_t>(parts.size()) || dims.size() < depth) {
            fail("nested lists of different lengths are no tensor");
        }
        for (const PyValue part : parts) {
            evaluation_.step();
            flatten(part, depth + 1, made);
        }
        return;
    }
    value = convert_.concrete(value);
    if (const auto* const tensor = value.as<PyTensor>()) {
        const std::vector<ProgramConstant> inner = elementsOf(*tensor);
        if (dims.size() == depth) {
            dims.insert(dims.end(), tensor->dims.begin(), tensor->dims.end());
        }
        if (TensorDims(dims.begin() + static_cast<std::ptrdiff_t>(depth), dims.end()) != tensor->dims) {
            fail("tensors of different shapes in a list are no tensor");
        }
        made.dtype = made.dtype == DType::None ? tensor->dtype : promoted(made.dtype, tensor->dtype);
        made.elements.insert(made.elements.end(), inner.begin(), inner.end());
        return;
    }
    if (!value.isNumber() || dims.size() != depth) {
        fail(dims.size() != depth ? std::string("nested lists of different depths are no tensor")
                                  : fmt::format("{} in a tensor's data", pyTypeName(value)));
    }
    const DType own = value.kind() == PyValue::Kind::Bool  ? DType::Bool
                      : value.kind() == PyValue::Kind::Int ? DType::I64
                                                           : DType::F32;
    made.dtype = made.dtype == DType::None ? own : promoted(made.dtype, own);
    made.elements.push_back(own == DType::F32 ? kernels::floatConstant(value.real())
                                              : kernels::intConstant(ProgramType::Int64, value.integer()));
}

PyTensor* ConstantTensors::tensor(PyValue value) {
    if (auto* const made = value.as<PyTensor>()) {
        return made;
    }
    if (value.isSymbol() || value.as<PyRow>() != nullptr || value.as<PyArray>() != nullptr) {
        fail("this operation needs a tensor known before the program runs; inside a program, index captured tensors by "
             "q_idx, "
             "kv_idx, b or h");
    }
    return tensorOf(value, std::nullopt);
}

PyTensor* ConstantTensors::tensorOf(PyValue value, std::optional<DType> dtype) {
    if (auto* const made = value.as<PyTensor>()) {
        return dtype && *dtype != made->dtype ? castTensor(evaluation_.heap, *made, *dtype) : made;
    }
    Flattened parts;
    flatten(value, 0, parts);
    const DType natural = parts.dtype == DType::None ? DType::F32 : parts.dtype;
    PyTensor* const made = fromElements(evaluation_.heap, dtype.value_or(natural), parts.dims, parts.elements);
    made->literal = evaluation_.inProgram;
    return made;
}

} // namespace vitrine::engine
