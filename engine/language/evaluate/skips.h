// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a statement that failed leaves behind. Its names throw its error where they are read, which may be nowhere. A
// statement of a function or a class is passed over only if nothing else can have come of it.

#include <set>
#include <string_view>

#include "engine/language/evaluate/names.h"
#include "engine/language/evaluate/services.h"
#include "engine/language/python/exposed_names.h"
#include "engine/language/python/statement_names.h"

namespace vitrine::engine {

class PySkips {
public:
    PySkips(PyServices& services, PyNames& names) : services_(services), names_(names) {}

    /// Passes over a statement inside a function, a class or a block, with a note. False: its error counts.
    bool skip(const PyStmt& statement, const PyError& error);
    /// Leaves `error` in all that a statement of a module binds, changes or gives to calls.
    void poisonModule(const PyStmt& statement, const PyError& error, PyNamespace& scope);
    /// What stands for a value that is not known, if nothing else can have come of it, else null.
    PyPoison* unneeded(const PyExpr& expr, const PyError& error);

private:
    /// Whether a call or block that was not evaluated changes nothing that others read.
    bool isHarmless(const StatementEffects& effects, const PyNamespace* scope, int depth);
    bool isHarmlessCallee(const PyExpr& callee, const PyNamespace* scope, int depth);
    /// Poisons the attributes that an assignment would have bound. False: it has other targets than these.
    bool poisonAttributes(const StatementEffects& effects, PyPoison* poisoned, bool apply);
    /// Names of the scope that functions of the text change when they are called by these names.
    std::set<std::string_view> effectsOf(const StatementNames& names, const PyNamespace& scope);
    void collectObjects(PyValue value, std::set<const void*>& objects);

    PyServices& services_;
    PyNames& names_;
};

} // namespace vitrine::engine
