// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Assignment: names, attributes, elements, and tuples of such targets.

#include "engine/language/evaluate/expressions.h"

namespace vitrine::engine {

class PyTargets {
public:
    PyTargets(PyServices& services, PyNames& names, PyExpressions& expressions)
        : services_(services), names_(names), expressions_(expressions) {}

    void assign(const PyExpr& target, PyValue value);
    void assignAugmented(const PyStmt& statement); ///< x += 1

private:
    void unpack(const PyExpr& target, PyValue value);

    PyServices& services_;
    PyNames& names_;
    PyExpressions& expressions_;
};

} // namespace vitrine::engine
