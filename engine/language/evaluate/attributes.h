// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What stands after a dot: members of modules and objects, methods and properties.

#include <optional>
#include <string_view>

#include "engine/language/evaluate/builtin_table.h"
#include "engine/language/evaluate/classes.h"
#include "engine/language/evaluate/modules.h"
#include "engine/language/evaluate/symbolic_tensors.h"

namespace vitrine::engine {

class PyAttributes {
public:
    PyAttributes(Evaluation& evaluation, SymbolicTensors& symbols, PyClasses& classes, PyModules& modules,
                 Caller& caller, const BuiltinTable& builtins)
        : evaluation_(evaluation), symbols_(symbols), classes_(classes), modules_(modules), caller_(caller),
          builtins_(builtins) {}

    /// Throws BadInput when there is none of that name.
    PyValue attribute(PyValue object, std::string_view name);
    std::optional<PyValue> find(PyValue object, std::string_view name);

private:
    std::optional<PyValue> memberOfInstance(PyValue object, std::string_view name);
    std::optional<PyValue> memberOfClass(PyClass& type, std::string_view name);
    std::optional<PyValue> memberOfFunction(PyValue object, std::string_view name);
    std::optional<PyValue> tensorMember(PyValue object, std::string_view name);

    Evaluation& evaluation_;
    SymbolicTensors& symbols_;
    PyClasses& classes_;
    PyModules& modules_;
    Caller& caller_;
    const BuiltinTable& builtins_;
};

} // namespace vitrine::engine
