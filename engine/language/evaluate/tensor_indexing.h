// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Subscripts of constant tensors by constants (views, as PyTorch's) and of captured tensors by symbols (loads).

#include <span>
#include <vector>

#include "engine/language/evaluate/constant_tensors.h"
#include "engine/language/evaluate/elementwise_operations.h"

namespace vitrine::engine {

/// The items of a tuple, or the index itself.
std::vector<PyValue> indexItems(PyValue index);

class TensorIndexing {
public:
    TensorIndexing(Evaluation& evaluation, PyConversions& convert, SymbolicTensors& symbols,
                   ElementwiseOperations& elements, ConstantTensors& constants)
        : evaluation_(evaluation), convert_(convert), symbols_(symbols), elements_(elements), constants_(constants) {}

    PyValue indexTensor(PyTensor& tensor, PyValue index);
    PyValue indexArray(PyArray& array, PyValue index);
    void assign(PyTensor& tensor, const std::vector<PyValue>& items, PyValue value);

private:
    PyTensor* constantView(PyTensor& tensor, std::span<const PyValue> items, std::vector<int>& keptDims,
                           std::vector<PyValue>& kept);
    PyValue loadedView(PyTensor& view, std::span<const int> dims, std::span<const PyValue> kept);
    PyTensor* gathered(PyTensor& view, std::span<const int> dims, std::span<const PyValue> kept);

    Evaluation& evaluation_;
    PyConversions& convert_;
    SymbolicTensors& symbols_;
    ElementwiseOperations& elements_;
    ConstantTensors& constants_;
};

} // namespace vitrine::engine
