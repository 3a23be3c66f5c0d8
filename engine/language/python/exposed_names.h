// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the objects of names may be given to, and so changed by, as far as the text alone tells.

#include <set>
#include <string_view>
#include <vector>

#include "engine/language/python/ast.h"

namespace vitrine::engine {

/// Names whose objects the value of `expr` may be, hold or be a view of.
void exposedNames(const PyExpr& expr, std::set<std::string_view>& names);

/// The name that "x.y[0].z()" begins with, "" if it begins with something else.
std::string_view rootName(const PyExpr& expr);

/// A call that shows its arguments and changes nothing: print, logger.info.
bool onlyShows(const PyExpr& call);

/// A method that changes its object: append, update, zero_.
bool isMutator(std::string_view method);

/// A call that may change names or attributes of anything: exec, globals, vars.
bool reachesEverything(const PyExpr& call);

/// What a statement may do beside binding names. Bodies of functions that it defines do nothing yet.
struct StatementEffects {
    bool leaves = false;                 ///< return, or break and continue of a loop around it
    bool changes = false;                ///< in place, names of other scopes, or anything at all
    std::set<std::string_view> exposed;  ///< names that calls get, as arguments or as their object
    std::vector<const PyExpr*> callees;  ///< of those calls
    std::vector<const PyExpr*> assigned; ///< attributes of names: "self.width = ..."
};
StatementEffects statementEffects(const PyStmt& statement);
StatementEffects blockEffects(const PyBlock& block);
StatementEffects expressionEffects(const PyExpr& expr);

} // namespace vitrine::engine
