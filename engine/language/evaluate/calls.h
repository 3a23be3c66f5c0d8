// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Calls of functions of the texts, builtins, partials, combinations of masks and classes.

#include <string_view>

#include "engine/language/evaluate/caller.h"
#include "engine/language/evaluate/statements.h"

namespace vitrine::engine {

class PyCalls final : public Caller {
public:
    PyCalls(PyServices& services, PyNames& names, PyExpressions& expressions, PyStatements& statements)
        : services_(services), names_(names), expressions_(expressions), statements_(statements) {}

    using Caller::call;
    using Caller::callBuiltin;
    PyValue call(PyValue callee, PyCall& call) override;
    PyValue callFunction(PyFunction& function, PyCall& call) override;
    PyValue callBuiltin(std::string_view name, PyCall& call) override;

private:
    PyValue callPartial(const PyPartial& partial, PyCall& call);
    PyValue callCombination(PyCombination& masks, PyCall& call);
    PyValue written(const PyBuiltin& method, PyValue result); ///< x.add_(1)
    void bindArguments(PyFunction& function, PyCall& call, PyNamespace& scope);

    PyServices& services_;
    PyNames& names_;
    PyExpressions& expressions_;
    PyStatements& statements_;
    int calls_ = 0; ///< that are nested
};

} // namespace vitrine::engine
