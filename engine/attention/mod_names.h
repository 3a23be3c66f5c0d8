// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which names a statement binds (or changes in place) and which it reads, those of nested functions included: what a chosen
// expression reaches is found by them, and only that is evaluated.

#include <set>
#include <string_view>
#include <vector>

#include "engine/attention/python_ast.h"

namespace vitrine::engine {

struct ModNames {
    std::set<std::string_view> binds;   ///< gives a new value
    std::set<std::string_view> changes; ///< in place: x[i] = ..., x.append(...)
    std::set<std::string_view> reads;
};
ModNames statementNames(const PyStmt& statement);
std::set<std::string_view> expressionNames(const PyExpr& expr);

/// The statements of `body` that `wanted` needs, in their order.
std::vector<const PyStmt*> reachedStatements(const std::vector<const PyStmt*>& body,
                                             const std::set<std::string_view>& wanted);

} // namespace vitrine::engine
