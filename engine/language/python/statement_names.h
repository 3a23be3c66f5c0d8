// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which names a statement binds (or changes in place) and which it reads, those of nested functions included.

#include <set>
#include <string_view>
#include <vector>

#include "engine/language/python/ast.h"

namespace vitrine::engine {

/// Stands for a name that the text does not tell: of exec, of globals()["x"] = ...
inline constexpr std::string_view kAnyName = "<any>";

/// What an assignment, a loop or a "with" gives a second name: objects of the sources may be in the targets.
struct AliasNames {
    std::set<std::string_view> targets, sources;
};

struct StatementNames {
    std::set<std::string_view> binds;   ///< gives a new value
    std::set<std::string_view> changes; ///< in place: x[i] = ..., x.append(...)
    std::set<std::string_view> reads;
    std::set<std::string_view> calls;   ///< functions and methods that it calls by their names, decorators too
    std::set<std::string_view> handed;  ///< objects and arguments of calls
    std::set<std::string_view> given;   ///< arguments of a call that is a statement of its own, but for print's
    std::set<std::string_view> methods; ///< of a class
    std::vector<AliasNames> aliases;
    std::set<std::string_view> effects;    ///< what calls of the functions that it defines bind or change
    std::set<std::string_view> innerCalls; ///< functions that those call
    bool changesArguments = false;         ///< those change what they are given
};
StatementNames statementNames(const PyStmt& statement);
/// `effects`, `innerCalls` and `changesArguments` of calls of the function.
StatementNames functionNames(const PyFunctionCode& code);
std::set<std::string_view> expressionNames(const PyExpr& expr);

} // namespace vitrine::engine
