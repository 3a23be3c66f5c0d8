// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Modules: what they have after their dot, and the statements that import them.

#include <optional>
#include <string_view>

#include "engine/language/evaluate/builtin_table.h"
#include "engine/language/evaluate/evaluation.h"
#include "engine/language/evaluate/outer_names.h"

namespace vitrine::engine {

class PyModules {
public:
    PyModules(Evaluation& evaluation, const BuiltinTable& builtins, const OuterNames& outer)
        : evaluation_(evaluation), builtins_(builtins), outer_(outer) {}

    /// None: the module has no such member.
    std::optional<PyValue> find(const PyModuleValue& module, std::string_view name) const;
    /// A member that find() does not know: a name of the texts and the catalogue, or an inner module. Throws BadInput
    /// when the module has no such member.
    PyValue unknownMember(const PyModuleValue& module, std::string_view name);

    void importModules(const PyStmt& statement); ///< import a, b.c as d
    void importNames(const PyStmt& statement);   ///< from a import b, c as d

private:
    PyValue imported(std::string_view module, std::string_view name);

    Evaluation& evaluation_;
    const BuiltinTable& builtins_;
    const OuterNames& outer_;
};

} // namespace vitrine::engine
