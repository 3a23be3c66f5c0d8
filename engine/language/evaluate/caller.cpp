// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/caller.h"

namespace vitrine::engine {

PyValue Caller::call(PyValue callee, std::vector<PyValue> arguments) {
    PyCall made;
    made.arguments = std::move(arguments);
    return call(callee, made);
}

PyValue Caller::callBuiltin(std::string_view name, std::vector<PyValue> arguments) {
    PyCall made;
    made.arguments = std::move(arguments);
    return callBuiltin(name, made);
}

} // namespace vitrine::engine
