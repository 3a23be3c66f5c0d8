// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Elements of whatever holds some: iteration, subscripts and assignment to them.

#include <vector>

#include "engine/language/evaluate/tensor_indexing.h"

namespace vitrine::engine {

class PyAttributes;
class PyClasses;
class PyOperators;

class PyContainers {
public:
    PyContainers(Evaluation& evaluation, PyConversions& convert, SymbolicTensors& symbols, TensorIndexing& indexing,
                 PyOperators& operators, PyClasses& classes, PyAttributes& attributes)
        : evaluation_(evaluation), convert_(convert), symbols_(symbols), tensorIndexing_(indexing),
          operators_(operators), classes_(classes), attributes_(attributes) {}

    std::vector<PyValue> iterate(PyValue value);
    PyValue index(PyValue object, PyValue index);
    void assignItem(PyValue object, PyValue index, PyValue value);
    /// The value of a key; null when the dict does not have it.
    PyValue* entryOf(PyDict& dict, PyValue key);
    void setEntry(PyDict& dict, PyValue key, PyValue value);

private:
    std::size_t position(PyValue index, std::size_t count);
    PyValue indexSequence(const std::vector<PyValue>& items, PyValue index, PyKind kind);
    PyValue indexRow(PyRow& row, PyValue index);
    PyValue indexString(const PyString& string, PyValue index);

    Evaluation& evaluation_;
    PyConversions& convert_;
    SymbolicTensors& symbols_;
    TensorIndexing& tensorIndexing_;
    PyOperators& operators_;
    PyClasses& classes_;
    PyAttributes& attributes_;
};

} // namespace vitrine::engine
