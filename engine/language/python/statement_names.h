// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which names a statement binds (or changes in place) and which it reads, those of nested functions included: what a
// chosen expression reaches is found by them, and only that is evaluated.

#include <set>
#include <string_view>
#include <vector>

#include "engine/language/python/ast.h"

namespace vitrine::engine {

struct StatementNames {
    std::set<std::string_view> binds;   ///< gives a new value
    std::set<std::string_view> changes; ///< in place: x[i] = ..., x.append(...)
    std::set<std::string_view> reads;
    std::set<std::string_view> calls;      ///< functions that it calls by their names, decorators too
    std::set<std::string_view> handed;     ///< arguments of a call that is a statement of its own
    std::set<std::string_view> effects;    ///< what calls of the functions that it defines bind or change
    std::set<std::string_view> innerCalls; ///< functions that those call
    bool changesArguments = false;         ///< those change what they are given
};
StatementNames statementNames(const PyStmt& statement);
std::set<std::string_view> expressionNames(const PyExpr& expr);

/// The statements of `body` that `wanted` needs, in their order.
std::vector<const PyStmt*> reachedStatements(const std::vector<const PyStmt*>& body,
                                             const std::set<std::string_view>& wanted);

} // namespace vitrine::engine
