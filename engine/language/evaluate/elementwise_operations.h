// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One operation on numbers, constant tensors, symbols and small arrays of symbols, whichever they are.

#include "engine/language/evaluate/conversions.h"
#include "engine/language/evaluate/symbolic_tensors.h"

namespace vitrine::engine {

class ElementwiseOperations {
public:
    ElementwiseOperations(Evaluation& evaluation, PyConversions& convert, SymbolicTensors& symbols)
        : evaluation_(evaluation), convert_(convert), symbols_(symbols) {}

    PyValue binary(kernels::ProgramOp op, PyValue a, PyValue b);
    PyValue unary(kernels::ProgramOp op, PyValue a);
    PyValue select(PyValue condition, PyValue a, PyValue b);
    PyValue cast(kernels::DType dtype, PyValue value);
    PyValue logicalNot(PyValue value);
    /// A tensor or a number as an operand of operations on constant tensors.
    TensorOperand operand(PyValue value);

private:
    PyValue sliderResult(PyValue number, NodeIndex node);

    Evaluation& evaluation_;
    PyConversions& convert_;
    SymbolicTensors& symbols_;
};

} // namespace vitrine::engine
