// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values as tensors that are known before the program runs.

#include <optional>
#include <vector>

#include "engine/language/evaluate/conversions.h"
#include "engine/language/values/tensor.h"

namespace vitrine::engine {

class PyContainers;

class ConstantTensors {
public:
    ConstantTensors(Evaluation& evaluation, PyConversions& convert, PyContainers& containers)
        : evaluation_(evaluation), convert_(convert), containers_(containers) {}

    /// A number, tensor, row or array as a constant tensor; throws for symbols.
    PyTensor* tensor(PyValue value);
    /// From nested lists too. None: the dtype that the elements have together.
    PyTensor* tensorOf(PyValue value, std::optional<kernels::DType> dtype);

private:
    struct Flattened;
    void flatten(PyValue value, std::size_t depth, Flattened& made);

    Evaluation& evaluation_;
    PyConversions& convert_;
    PyContainers& containers_;
};

} // namespace vitrine::engine
