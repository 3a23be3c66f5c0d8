// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Execution of statements.

#include <cstdint>
#include <optional>

#include "engine/language/evaluate/definitions.h"
#include "engine/language/evaluate/patterns.h"
#include "engine/language/evaluate/skips.h"
#include "engine/language/evaluate/targets.h"

namespace vitrine::engine {

/// Where execution goes on after a statement.
enum class Flow : std::uint8_t { Next, Break, Continue, Return };

class PyStatements {
public:
    PyStatements(PyServices& services, PyNames& names, PyModules& modules, PyExpressions& expressions,
                 PyTargets& targets, PyDefinitions& definitions, PySkips& skips)
        : services_(services), names_(names), modules_(modules), expressions_(expressions), targets_(targets),
          definitions_(definitions), skips_(skips), patterns_(services, expressions) {}

    Flow execute(const PyBlock& block);
    /// Throws PyError with the statement's place.
    Flow execute(const PyStmt& statement);
    /// The value that the body of a function returns.
    PyValue run(const PyBlock& body);

private:
    Flow executePlaced(const PyStmt& statement);
    Flow executeIf(const PyStmt& statement);
    /// One round of a loop: how the loop ends, if it does.
    std::optional<Flow> runBody(const PyStmt& loop);
    Flow executeFor(const PyStmt& statement);
    Flow executeWhile(const PyStmt& statement);
    Flow executeTry(const PyStmt& statement);
    Flow executeWith(const PyStmt& statement);
    /// The context of a "with"; one of another module, of which nothing comes, is ignored.
    PyValue enter(const PyExpr& context);
    void leave(const std::vector<PyValue>& contexts);
    void deleteTarget(const PyExpr& target);
    Flow executeMatch(const PyStmt& statement);
    void executeElsewhere(const PyStmt& statement);
    [[noreturn]] void raised(const PyStmt& statement);
    void asserted(const PyStmt& statement);

    PyServices& services_;
    PyNames& names_;
    PyModules& modules_;
    PyExpressions& expressions_;
    PyTargets& targets_;
    PyDefinitions& definitions_;
    PySkips& skips_;
    PyPatterns patterns_;
    PyValue returned_;
};

} // namespace vitrine::engine
