// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/values/tensor.h"

#include <cstring>
#include <fmt/format.h>

#include "engine/language/values/strides.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramType;

namespace {

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

PyTensor* newTensor(PyHeap& heap, DType dtype, TensorDims dims) {
    const std::int64_t count = checkedCount(dims);
    heap.charge(count);
    auto* const made = heap.make<PyTensor>();
    made->dtype = dtype;
    made->strides = contiguousStrides(dims);
    made->dims = std::move(dims);
    made->storage = std::make_shared<PyStorage>();
    if (made->isReal()) {
        made->storage->reals.resize(static_cast<std::size_t>(count));
    } else {
        made->storage->integers.resize(static_cast<std::size_t>(count));
    }
    return made;
}

PyTensor* scalarTensor(PyHeap& heap, DType dtype, const ProgramConstant& value) {
    PyTensor* const made = newTensor(heap, dtype, {});
    setElement(*made, 0, value);
    return made;
}

ProgramConstant elementAt(const PyTensor& tensor, std::int64_t storageIndex) {
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

void setElement(PyTensor& tensor, std::int64_t storageIndex, const ProgramConstant& value) {
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

void needContents(const PyTensor& tensor) {
    if (!tensor.storage) {
        throw base::BadInput(fmt::format("the contents of {} are not known here; bind it by a safetensors file",
                                         tensor.name.empty() ? "this tensor" : "'" + tensor.name + "'"));
    }
}

std::vector<std::int64_t> offsetsOf(const PyTensor& tensor) {
    needContents(tensor);
    return storageIndices(tensor.dims, tensor.strides, tensor.offset, tensor.count());
}

std::vector<ProgramConstant> elementsOf(const PyTensor& tensor) {
    std::vector<ProgramConstant> made;
    made.reserve(static_cast<std::size_t>(tensor.count()));
    for (const std::int64_t at : offsetsOf(tensor)) {
        made.push_back(elementAt(tensor, at));
    }
    return made;
}

std::vector<std::int64_t> integersOf(const PyTensor& tensor) {
    std::vector<std::int64_t> made;
    for (const ProgramConstant& value : elementsOf(tensor)) {
        made.push_back(kernels::foldCast(ProgramType::Int64, value).integer);
    }
    return made;
}

PyTensor* fromElements(PyHeap& heap, DType dtype, TensorDims dims, std::span<const ProgramConstant> elements) {
    PyTensor* const made = newTensor(heap, dtype, std::move(dims));
    for (std::size_t i = 0; i < elements.size(); ++i) {
        setElement(*made, static_cast<std::int64_t>(i), elements[i]);
    }
    return made;
}

PyTensor* fromIntegers(PyHeap& heap, DType dtype, std::span<const std::int64_t> values) {
    PyTensor* const made = newTensor(heap, dtype, {static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) {
        setElement(*made, static_cast<std::int64_t>(i), kernels::intConstant(ProgramType::Int64, values[i]));
    }
    return made;
}

std::shared_ptr<const std::vector<std::byte>> bytesOfTensor(const PyTensor& tensor) {
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

PyTensor* tensorOfCapture(PyHeap& heap, const CapturedTensor& captured) {
    const TensorDims dims(captured.shape.dims().begin(), captured.shape.dims().end());
    PyTensor* made = nullptr;
    if (!captured.data || captured.shape.count() > kMaxElements) {
        made = heap.make<PyTensor>();
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

} // namespace vitrine::engine
