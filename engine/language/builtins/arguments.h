// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Arguments that many functions of tensors share. Private to the tables of builtins.

#include <optional>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

/// A value of the program: not a tensor that is known.
bool isSymbolic(E& e, PyValue value);
/// One dimension as a positional argument or as dim=; none for None.
std::optional<int> dimArgument(E& e, C& c, std::size_t index, int rank);
/// view(2, 3), view((2, 3)), view(shape=(2, 3)).
TensorDims dimsArgument(E& e, C& c, std::size_t from, std::string_view name);

/// The tensor that a method in place changes; throws for a captured one inside a program.
PyTensor& changeable(E& e, C& c);

} // namespace vitrine::engine
