// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Partial evaluation of parsed texts: constants are computed, what depends on a program's inputs becomes nodes.
// PyExpressions, PyStatements and PyCalls walk the trees; PyOperators, PyContainers, PyAttributes and PyClasses give
// values their meaning; SymbolicTensors and ElementwiseOperations build the program. One interpreter serves one choice
// of a program; what it counts (steps, nesting, elements) bounds every text.

#include <span>
#include <string>
#include <vector>

#include "engine/language/evaluate/calls.h"

namespace vitrine::engine {

class Interpreter {
public:
    /// `options` and `builtins` must outlive the interpreter.
    Interpreter(const ProgramOptions& options, const BuiltinTable& builtins);
    Interpreter(const Interpreter&) = delete; // its parts point at each other
    Interpreter& operator=(const Interpreter&) = delete;

    void setOuterNames(OuterNames names) { outer_ = std::move(names); }
    PyNamespace* newScope() { return evaluation_.heap.scope(nullptr); }

    /// Runs chosen statements of a module; a statement that fails poisons the names that it would bind.
    void runModule(const PyText& text, std::span<const PyStmt* const> statements, PyNamespace& scope);
    PyValue evaluateIn(const PyText& text, const PyExpr& expr, PyNamespace& scope);

    /// Calls `function` with symbols and returns the result's node, of type Bool (mask) or Float (score).
    NodeIndex programResult(const PyText& text, const PyExpr& expr, PyValue function, bool isMask);
    kernels::Program finish(NodeIndex result) { return evaluation_.builder.finish(result); }
    std::vector<CapturedTensor> captures(const kernels::Program& program) const { return symbols_.captures(program); }
    std::vector<std::string>& notes() { return evaluation_.notes(); }
    std::vector<SlidableNumber>& numbers() { return names_.numbers(); }

private:
    PyValue chosenFunction(PyValue chosen, bool isMask);
    PyValue callWithInputs(PyValue function, bool isMask);
    NodeIndex resultNode(PyValue result, bool isMask);

    Evaluation evaluation_;
    OuterNames outer_;
    PyServices services_;
    PyConversions convert_;
    SymbolicTensors symbols_;
    ElementwiseOperations elements_;
    ConstantTensors constants_;
    TensorIndexing indexing_;
    PyClasses classes_;
    PyOperators operators_;
    PyContainers containers_;
    PyModules modules_;
    PyAttributes attributes_;
    PyNames names_;
    PyExpressions expressions_;
    PyTargets targets_;
    PyDefinitions definitions_;
    PySkips skips_;
    PyStatements statements_;
    PyCalls calls_;
};

} // namespace vitrine::engine
