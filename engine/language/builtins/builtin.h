// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the tables of builtins have in common. A builtin is a function of an evaluation `e` and of a call `c`: it takes
// the call's arguments, finishes it and returns a value. Private to this folder.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "engine/language/builtins/builtins.h"
#include "engine/language/evaluate/services.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

using E = PyServices;
using C = PyCall;

/// The argument `input` of a call, whatever else it is given.
inline PyValue inputItself(E& /*e*/, C& c) {
    return c.required(0, "input");
}

/// The argument `input` of a call that takes no other.
inline PyValue onlyInput(C& c) {
    const PyValue input = c.required(0, "input");
    c.finish();
    return input;
}

/// One operation on every element of the only argument.
template <ProgramOp Op> PyValue unaryOp(E& e, C& c) {
    return e.elements.unary(Op, onlyInput(c));
}

} // namespace vitrine::engine
