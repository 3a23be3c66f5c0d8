// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a text offers to a picker, by its syntax alone.

#include <optional>
#include <string_view>
#include <vector>

#include "engine/language/module.h"
#include "engine/language/python/parser.h"

namespace vitrine::engine {

/// Functions of the text's own scope with four or five parameters, functions that return such functions, and lambdas
/// and combinations that are assigned to names.
std::vector<ProgramOffer> offersOf(const PyText& text);

/// Where a function of that name is defined inside another function or under `if __name__ == "__main__"`.
std::optional<PyPlace> nestedDefinition(const PyText& text, std::string_view name);

} // namespace vitrine::engine
