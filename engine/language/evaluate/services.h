// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What functions that are not written in Python may use of an evaluation.

#include "engine/language/evaluate/attributes.h"
#include "engine/language/evaluate/containers.h"
#include "engine/language/evaluate/operators.h"
#include "engine/language/values/call.h"

namespace vitrine::engine {

struct PyServices {
    Evaluation& evaluation;
    PyHeap& heap;                     ///< of the evaluation
    kernels::ProgramBuilder& builder; ///< of the evaluation
    PyConversions& convert;
    SymbolicTensors& symbols;
    ElementwiseOperations& elements;
    ConstantTensors& constants;
    PyClasses& classes;
    PyOperators& operators;
    PyContainers& containers;
    PyAttributes& attributes;
    Caller& caller;
    const BuiltinTable& builtins;
};

} // namespace vitrine::engine
