// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Functions and classes that a text defines, with their decorators.

#include "engine/language/evaluate/expressions.h"

namespace vitrine::engine {

class PyStatements;

class PyDefinitions {
public:
    PyDefinitions(PyServices& services, PyNames& names, PyExpressions& expressions, PyStatements& statements)
        : services_(services), names_(names), expressions_(expressions), statements_(statements) {}

    PyFunction* makeFunction(const PyFunctionCode& code);
    void define(const PyStmt& statement);      ///< def
    void defineClass(const PyStmt& statement); ///< class

private:
    PyClass* classHead(const PyStmt& statement);
    PyValue decorate(PyValue value, const PyExpr& decorator);
    bool isOfKnownModule(std::string_view root);
    void numberMembers(const PyBlock& block);

    PyServices& services_;
    PyNames& names_;
    PyExpressions& expressions_;
    PyStatements& statements_;
};

} // namespace vitrine::engine
