// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values of expressions.

#include <functional>

#include "engine/language/evaluate/names.h"
#include "engine/language/evaluate/services.h"
#include "engine/language/evaluate/skips.h"

namespace vitrine::engine {

class PyDefinitions;
class PyTargets;

class PyExpressions {
public:
    PyExpressions(PyServices& services, PyNames& names, PyTargets& targets, PyDefinitions& definitions, PySkips& skips)
        : services_(services), names_(names), targets_(targets), definitions_(definitions), skips_(skips) {}

    /// Throws PyError with the expression's place.
    PyValue evaluate(const PyExpr& expr);
    /// A value that may not be needed: where it is not known, reading it throws.
    PyValue evaluateUnneeded(const PyExpr& expr);

private:
    PyValue evaluatePlaced(const PyExpr& expr);
    PyValue evaluateLiteral(const PyExpr& expr);
    PyValue evaluateCall(const PyExpr& expr);
    PyValue evaluateCompare(const PyExpr& expr);
    PyValue evaluateLogic(const PyExpr& expr);
    PyValue evaluateConditional(const PyExpr& expr);
    PyValue evaluateDisplay(const PyExpr& expr);
    PyValue evaluateDict(const PyExpr& expr);
    PyValue evaluateFormatted(const PyExpr& expr);
    PyValue evaluateComprehension(const PyExpr& expr);
    PyValue evaluateUnary(const PyExpr& expr);
    void comprehend(const PyExpr& expr, std::size_t clause, const std::function<void()>& body);

    PyServices& services_;
    PyNames& names_;
    PyTargets& targets_;
    PyDefinitions& definitions_;
    PySkips& skips_;
};

} // namespace vitrine::engine
