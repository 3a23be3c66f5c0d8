// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a chosen expression reaches in a file: only that is evaluated.

#include <set>
#include <string_view>
#include <vector>

#include "engine/language/python/ast.h"

namespace vitrine::engine {

/// The statements of `body` that `wanted` needs, in their order.
std::vector<const PyStmt*> reachedStatements(const std::vector<const PyStmt*>& body,
                                             const std::set<std::string_view>& wanted);

} // namespace vitrine::engine
