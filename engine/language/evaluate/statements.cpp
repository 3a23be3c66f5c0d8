// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/statements.h"

#include <fmt/format.h>

namespace vitrine::engine {

Flow PyStatements::execute(const PyBlock& block) {
    for (const std::unique_ptr<PyStmt>& statement : block) {
        try {
            const Flow flow = execute(*statement);
            if (flow != Flow::Next) {
                return flow;
            }
        } catch (const PyError& error) {
            if (!skips_.skip(*statement, error)) {
                throw;
            }
        }
    }
    return Flow::Next;
}

Flow PyStatements::execute(const PyStmt& statement) {
    const EvaluationDepth depth(services_.evaluation);
    services_.evaluation.range = statement.range;
    try {
        services_.evaluation.step();
        return executePlaced(statement);
    } catch (const PyError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw services_.evaluation.located(error, statement.range);
    }
}

PyValue PyStatements::run(const PyBlock& body) {
    returned_ = {};
    const PyValue result = execute(body) == Flow::Return ? returned_ : PyValue();
    returned_ = {};
    return result;
}

Flow PyStatements::executePlaced(const PyStmt& statement) {
    switch (statement.kind) {
    case PyStmtKind::Expression: {
        const PyExprKind kind = statement.exprs[0]->kind;
        if (kind != PyExprKind::String && kind != PyExprKind::Ellipsis) {
            expressions_.evaluate(*statement.exprs[0]);
        }
        return Flow::Next;
    }
    case PyStmtKind::Assign: {
        const PyValue value = expressions_.evaluate(*statement.exprs.back());
        for (std::size_t i = 0; i + 1 < statement.exprs.size(); ++i) {
            targets_.assign(*statement.exprs[i], value);
        }
        return Flow::Next;
    }
    case PyStmtKind::AugmentedAssign:
        targets_.assignAugmented(statement);
        return Flow::Next;
    case PyStmtKind::AnnotatedAssign:
        if (statement.exprs[2]) {
            targets_.assign(*statement.exprs[0], expressions_.evaluate(*statement.exprs[2]));
        }
        return Flow::Next;
    case PyStmtKind::Return:
        returned_ = statement.exprs.empty() ? PyValue() : expressions_.evaluate(*statement.exprs[0]);
        return Flow::Return;
    case PyStmtKind::If:
        return executeIf(statement);
    case PyStmtKind::For:
        return executeFor(statement);
    case PyStmtKind::While:
        return executeWhile(statement);
    case PyStmtKind::Def:
        definitions_.define(statement);
        return Flow::Next;
    case PyStmtKind::Class:
        definitions_.defineClass(statement);
        return Flow::Next;
    case PyStmtKind::Import:
        modules_.importModules(statement);
        return Flow::Next;
    case PyStmtKind::ImportFrom:
        modules_.importNames(statement);
        return Flow::Next;
    case PyStmtKind::Pass:
    case PyStmtKind::TypeAlias:
        return Flow::Next;
    case PyStmtKind::Break:
        return Flow::Break;
    case PyStmtKind::Continue:
        return Flow::Continue;
    case PyStmtKind::Raise:
        raised(statement);
    case PyStmtKind::Assert:
        asserted(statement);
        return Flow::Next;
    case PyStmtKind::Delete:
        deleteTarget(*statement.exprs[0]);
        return Flow::Next;
    case PyStmtKind::Global:
    case PyStmtKind::Nonlocal:
        executeElsewhere(statement);
        return Flow::Next;
    case PyStmtKind::With:
        return executeWith(statement);
    case PyStmtKind::Try:
        return executeTry(statement);
    case PyStmtKind::Match:
        return executeMatch(statement);
    }
    return Flow::Next;
}

// global and nonlocal: these names belong to another scope.
void PyStatements::executeElsewhere(const PyStmt& statement) {
    for (const PyAlias& alias : statement.aliases) {
        PyNamespace* target = services_.evaluation.scope->parent;
        while (target != nullptr && target->parent != nullptr &&
               (statement.kind == PyStmtKind::Global || target->names.count(alias.name) == 0)) {
            target = target->parent;
        }
        if (target != nullptr) {
            services_.evaluation.scope->elsewhere[alias.name] = target;
        }
    }
}

Flow PyStatements::executeIf(const PyStmt& statement) {
    for (std::size_t i = 0; i < statement.exprs.size(); ++i) {
        const PyValue test = expressions_.evaluate(*statement.exprs[i]);
        bool taken = false;
        try {
            taken = services_.convert.truth(test);
        } catch (const base::BadInput& error) {
            throw services_.evaluation.located(error, statement.exprs[i]->range);
        }
        if (taken) {
            return execute(statement.blocks[i]);
        }
    }
    const bool hasElse = statement.blocks.size() > statement.exprs.size();
    return hasElse ? execute(statement.blocks.back()) : Flow::Next;
}

std::optional<Flow> PyStatements::runBody(const PyStmt& loop) {
    const Flow flow = execute(loop.blocks[0]);
    if (flow == Flow::Return) {
        return flow;
    }
    return flow == Flow::Break ? std::optional(Flow::Next) : std::nullopt;
}

Flow PyStatements::executeFor(const PyStmt& statement) {
    for (const PyValue item : services_.containers.iterate(expressions_.evaluate(*statement.exprs[1]))) {
        services_.evaluation.step();
        targets_.assign(*statement.exprs[0], item);
        if (const std::optional<Flow> left = runBody(statement)) {
            return *left;
        }
    }
    return statement.blocks.size() > 1 ? execute(statement.blocks[1]) : Flow::Next;
}

Flow PyStatements::executeWhile(const PyStmt& statement) {
    while (services_.convert.truth(expressions_.evaluate(*statement.exprs[0]))) {
        services_.evaluation.step();
        if (const std::optional<Flow> left = runBody(statement)) {
            return *left;
        }
    }
    return statement.blocks.size() > 1 ? execute(statement.blocks[1]) : Flow::Next;
}

// What cannot be evaluated counts as an exception that the first handler takes.
Flow PyStatements::executeTry(const PyStmt& statement) {
    const std::size_t handlers = statement.handlers;
    Flow flow = Flow::Next;
    bool failed = false;
    services_.evaluation.tries += handlers > 0 ? 1 : 0;
    try {
        flow = execute(statement.blocks[0]);
        services_.evaluation.tries -= handlers > 0 ? 1 : 0;
    } catch (const PyError& error) {
        services_.evaluation.tries -= handlers > 0 ? 1 : 0;
        if (handlers == 0 || services_.evaluation.outOfSteps()) {
            throw;
        }
        failed = true;
        services_.evaluation.note(fmt::format("'try' failed and its first handler ran: {}", error.description()));
    }
    if (failed) {
        flow = execute(statement.blocks[1]);
    } else if (statement.hasElse && flow == Flow::Next) {
        flow = execute(statement.blocks[1 + handlers]);
    }
    if (statement.hasFinally) {
        const Flow last = execute(statement.blocks.back());
        flow = last == Flow::Next ? flow : last;
    }
    return flow;
}

Flow PyStatements::executeWith(const PyStmt& statement) {
    int withoutGradient = 0;
    std::vector<PyValue> contexts;
    for (std::size_t i = 0; i < statement.exprs.size(); i += 2) {
        const PyValue context = enter(*statement.exprs[i]);
        const auto* const ignored = context.as<PyIgnored>();
        withoutGradient += ignored != nullptr && ignored->what == "torch.no_grad" ? 1 : 0;
        contexts.push_back(context);
        const PyValue entered = services_.classes.special(context, "__enter__", {}).value_or(context);
        if (statement.exprs[i + 1]) {
            targets_.assign(*statement.exprs[i + 1], entered);
        }
    }
    services_.evaluation.noGradient += withoutGradient;
    try {
        const Flow flow = execute(statement.blocks[0]);
        services_.evaluation.noGradient -= withoutGradient;
        leave(contexts);
        return flow;
    } catch (...) {
        services_.evaluation.noGradient -= withoutGradient;
        throw;
    }
}

PyValue PyStatements::enter(const PyExpr& context) {
    const PyValue made = expressions_.evaluateUnneeded(context);
    if (const auto* const poisoned = made.as<PyPoison>()) {
        services_.evaluation.note(fmt::format("this context is ignored: {}", poisoned->what));
    }
    return made;
}

void PyStatements::leave(const std::vector<PyValue>& contexts) {
    for (std::size_t i = contexts.size(); i-- > 0;) {
        services_.classes.special(contexts[i], "__exit__", {PyValue(), PyValue(), PyValue()});
    }
}

void PyStatements::deleteTarget(const PyExpr& target) {
    switch (target.kind) {
    case PyExprKind::Name: {
        PyNamespace& scope = *services_.evaluation.scope;
        const auto elsewhere = scope.elsewhere.find(target.name);
        (elsewhere == scope.elsewhere.end() ? scope : *elsewhere->second).names.erase(target.name);
        return;
    }
    case PyExprKind::Tuple:
    case PyExprKind::List:
        for (const PyExprPtr& item : target.items) {
            deleteTarget(*item);
        }
        return;
    case PyExprKind::Attribute: {
        const PyValue object = expressions_.evaluate(*target.items[0]);
        if (auto* const instance = object.as<PyInstance>()) {
            instance->attributes.erase(std::string(target.name));
            return;
        }
        if (auto* const type = object.as<PyClass>()) {
            type->scope->names.erase(target.name);
            return;
        }
        fail(fmt::format("del of an attribute of {} is not supported", pyTypeName(object)));
    }
    default:
        fail("del of an element is not supported; write x.pop(key), or make the container without it");
    }
}

Flow PyStatements::executeMatch(const PyStmt& statement) {
    const PyValue subject = expressions_.evaluate(*statement.exprs[0]);
    for (std::size_t i = 0; i < statement.patterns.size(); ++i) {
        PyPatterns::Bound names;
        services_.evaluation.range = statement.patterns[i].range;
        try {
            if (!patterns_.matches(statement.patterns[i], subject, names)) {
                continue;
            }
        } catch (const PyError&) {
            throw;
        } catch (const base::BadInput& error) {
            throw services_.evaluation.located(error, statement.patterns[i].range);
        }
        for (const auto& [name, value] : names) {
            names_.bind(name, value, *services_.evaluation.scope);
        }
        const PyExpr* const guard = statement.exprs[i + 1].get();
        if (guard == nullptr || services_.convert.truth(expressions_.evaluate(*guard))) {
            return execute(statement.blocks[i]);
        }
    }
    return Flow::Next;
}

void PyStatements::raised(const PyStmt& statement) {
    std::string what = "the text raises an error here";
    if (!statement.exprs.empty() && statement.exprs[0]->kind == PyExprKind::Call) {
        const PyExpr& exception = *statement.exprs[0];
        what = fmt::format("{}", std::string_view(services_.evaluation.text->file.text)
                                     .substr(exception.items[0]->range.begin,
                                             exception.items[0]->range.end - exception.items[0]->range.begin));
        if (exception.items.size() > 1) {
            what += ": " + pyText(expressions_.evaluate(*exception.items[1]));
        }
    }
    fail(what);
}

void PyStatements::asserted(const PyStmt& statement) {
    const PyValue test = expressions_.evaluate(*statement.exprs[0]);
    if (test.isSymbol() && !services_.builder.real(test.node())) {
        services_.evaluation.note("an assertion about values that are known only for each element is not checked");
        return;
    }
    if (!services_.convert.truth(test)) {
        fail(statement.exprs.size() > 1 ? "assertion failed: " + pyText(expressions_.evaluate(*statement.exprs[1]))
                                        : "assertion failed");
    }
}

} // namespace vitrine::engine
