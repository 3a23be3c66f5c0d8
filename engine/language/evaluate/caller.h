// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Calls of whatever can be called, for the parts of an evaluation that do not walk trees themselves.

#include <string_view>
#include <vector>

#include "engine/language/values/call.h"

namespace vitrine::engine {

class Caller {
public:
    Caller() = default;
    virtual ~Caller() = default;
    Caller(const Caller&) = delete; // the parts of an evaluation point at it
    Caller& operator=(const Caller&) = delete;

    /// Throws BadInput when the value cannot be called or does not take these arguments.
    virtual PyValue call(PyValue callee, PyCall& call) = 0;
    virtual PyValue callFunction(PyFunction& function, PyCall& call) = 0;
    /// The builtin of that full name, which must exist.
    virtual PyValue callBuiltin(std::string_view name, PyCall& call) = 0;

    PyValue call(PyValue callee, std::vector<PyValue> arguments);
    PyValue callBuiltin(std::string_view name, std::vector<PyValue> arguments);
};

} // namespace vitrine::engine
