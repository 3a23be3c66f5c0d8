// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Python's operators and comparisons. The classes of a text may define their own: a + b calls __add__ or __radd__.

#include <optional>

#include "engine/language/evaluate/classes.h"
#include "engine/language/evaluate/elementwise_operations.h"

namespace vitrine::engine {

class PyContainers;

class PyOperators {
public:
    PyOperators(Evaluation& evaluation, PyConversions& convert, ElementwiseOperations& elements,
                PyContainers& containers, PyClasses& classes, Caller& caller)
        : evaluation_(evaluation), convert_(convert), elements_(elements), containers_(containers), classes_(classes),
          caller_(caller) {}

    PyValue operate(PyOperator op, PyValue a, PyValue b);
    PyValue contains(PyValue container, PyValue item);
    bool equal(PyValue a, PyValue b);
    bool less(PyValue a, PyValue b); ///< of numbers, strings, and tuples or lists of them

private:
    PyValue operateObjects(PyOperator op, PyValue a, PyValue b);
    std::optional<PyValue> ordered(PyOperator op, PyValue a, PyValue b);
    std::optional<PyValue> overloaded(PyOperator op, PyValue a, PyValue b);
    PyValue repeated(const PySequence& sequence, PyValue count);
    PyValue joinedDicts(PyValue a, PyValue b);
    PyValue combinedSets(PyOperator op, const PySequence& left, const PySequence& right);

    Evaluation& evaluation_;
    PyConversions& convert_;
    ElementwiseOperations& elements_;
    PyContainers& containers_;
    PyClasses& classes_;
    Caller& caller_;
};

} // namespace vitrine::engine
