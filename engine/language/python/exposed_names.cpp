// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/exposed_names.h"

#include <algorithm>
#include <array>

namespace vitrine::engine {

namespace {

template <std::size_t N> bool isOneOf(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// Attributes that share nothing with their object.
constexpr std::array<std::string_view, 6> kPlainAttributes = {"shape", "dtype", "device", "ndim", "__name__", "layout"};

class EffectCollector {
public:
    StatementEffects made;

    void expression(const PyExpr* expr) {
        if (expr == nullptr) {
            return;
        }
        if (expr->kind == PyExprKind::Call) {
            call(*expr);
        }
        for (const PyExprPtr& item : expr->items) {
            expression(item.get());
        }
        if (!expr->extra) {
            return;
        }
        for (const PyClause& clause : expr->extra->clauses) {
            exposedNames(*clause.iterable, made.exposed); // the target is another name of its items
            expression(clause.iterable.get());
            for (const PyExprPtr& condition : clause.conditions) {
                expression(condition.get());
            }
        }
        if (expr->extra->lambda) {
            defaults(*expr->extra->lambda);
        }
    }

    void block(const PyBlock& statements) {
        for (const std::unique_ptr<PyStmt>& each : statements) {
            statement(*each);
        }
    }

    void statement(const PyStmt& statement) {
        switch (statement.kind) {
        case PyStmtKind::Return:
            made.leaves = true;
            break;
        case PyStmtKind::Break:
        case PyStmtKind::Continue:
            made.leaves = made.leaves || loops_ == 0;
            break;
        case PyStmtKind::Delete:
        case PyStmtKind::Global:
        case PyStmtKind::Nonlocal:
            made.changes = true;
            break;
        case PyStmtKind::AugmentedAssign:
            made.changes = true; // a list or a tensor grows in place
            break;
        case PyStmtKind::Assign:
            for (std::size_t i = 0; i + 1 < statement.exprs.size(); ++i) {
                target(*statement.exprs[i]);
            }
            break;
        case PyStmtKind::AnnotatedAssign:
            if (statement.exprs[2]) {
                target(*statement.exprs[0]);
                expression(statement.exprs[2].get());
            }
            return;
        case PyStmtKind::For:
            target(*statement.exprs[0]);
            break;
        case PyStmtKind::With:
            for (std::size_t i = 1; i < statement.exprs.size(); i += 2) {
                if (statement.exprs[i]) {
                    target(*statement.exprs[i]);
                }
            }
            break;
        case PyStmtKind::Def:
            defaults(*statement.function);
            return;
        case PyStmtKind::Class:
            decorators(statement.decorators);
            break;
        default:
            break;
        }
        for (const PyExprPtr& expr : statement.exprs) {
            expression(expr.get());
        }
        const bool loop = statement.kind == PyStmtKind::For || statement.kind == PyStmtKind::While;
        loops_ += loop ? 1 : 0;
        for (const PyBlock& inner : statement.blocks) {
            block(inner);
        }
        loops_ -= loop ? 1 : 0;
    }

private:
    void call(const PyExpr& expr) {
        if (onlyShows(expr)) {
            return;
        }
        made.changes = made.changes || reachesEverything(expr);
        made.callees.push_back(expr.items[0].get());
        if (expr.items[0]->kind == PyExprKind::Attribute) {
            exposedNames(*expr.items[0]->items[0], made.exposed);
        }
        for (std::size_t i = 1; i < expr.items.size(); ++i) {
            exposedNames(*expr.items[i], made.exposed);
        }
    }

    void decorators(const std::vector<PyExprPtr>& exprs) {
        for (const PyExprPtr& expr : exprs) {
            expression(expr.get());
            made.callees.push_back(expr.get());
        }
    }

    void defaults(const PyFunctionCode& code) {
        for (const PyParameter& parameter : code.parameters) {
            expression(parameter.value.get());
        }
        decorators(code.decorators);
    }

    void target(const PyExpr& expr) {
        switch (expr.kind) {
        case PyExprKind::Name:
            return;
        case PyExprKind::Attribute:
            made.assigned.push_back(&expr);
            made.changes = made.changes || expr.items[0]->kind != PyExprKind::Name;
            return;
        case PyExprKind::Subscript:
            made.changes = true;
            return;
        default:
            for (const PyExprPtr& item : expr.items) {
                target(*item);
            }
        }
    }

    int loops_ = 0;
};

} // namespace

void exposedNames(const PyExpr& expr, std::set<std::string_view>& names) {
    switch (expr.kind) {
    case PyExprKind::Name:
        names.insert(expr.name);
        return;
    case PyExprKind::Attribute:
        if (isOneOf(kPlainAttributes, expr.name)) {
            return;
        }
        break;
    case PyExprKind::Subscript:
        exposedNames(*expr.items[0], names);
        return;
    case PyExprKind::Conditional:
        exposedNames(*expr.items[1], names);
        exposedNames(*expr.items[2], names);
        return;
    case PyExprKind::Unary:
    case PyExprKind::Not:
    case PyExprKind::Binary:
    case PyExprKind::Compare:
    case PyExprKind::FString:
    case PyExprKind::Lambda:
        return; // a new object
    default:
        break;
    }
    for (const PyExprPtr& item : expr.items) {
        if (item) {
            exposedNames(*item, names);
        }
    }
    if (expr.extra) {
        for (const PyClause& clause : expr.extra->clauses) {
            exposedNames(*clause.iterable, names);
        }
    }
}

std::string_view rootName(const PyExpr& expr) {
    const PyExpr* at = &expr;
    while (at->kind == PyExprKind::Attribute || at->kind == PyExprKind::Subscript || at->kind == PyExprKind::Call) {
        at = at->items[0].get();
    }
    return at->kind == PyExprKind::Name ? at->name : std::string_view();
}

bool onlyShows(const PyExpr& call) {
    static constexpr std::array<std::string_view, 6> kFunctions = {"print", "pprint", "repr",
                                                                   "str",   "len",    "isinstance"};
    static constexpr std::array<std::string_view, 10> kMethods = {
        "info", "debug", "warning", "warn", "error", "critical", "exception", "warning_once", "info_once", "print"};
    const PyExpr& callee = *call.items[0];
    return (callee.kind == PyExprKind::Name && isOneOf(kFunctions, callee.name)) ||
           (callee.kind == PyExprKind::Attribute && isOneOf(kMethods, callee.name));
}

bool isMutator(std::string_view method) {
    static constexpr std::array<std::string_view, 19> kMutators = {
        "append",      "extend",      "insert",          "pop", "popitem", "remove",     "clear",  "update",
        "sort",        "reverse",     "setdefault",      "add", "discard", "appendleft", "rotate", "apply",
        "__setitem__", "__setattr__", "register_buffer",
    };
    const bool inPlace = method.size() > 1 && method.back() == '_' && method[method.size() - 2] != '_';
    return inPlace || isOneOf(kMutators, method);
}

bool reachesEverything(const PyExpr& call) {
    static constexpr std::array<std::string_view, 7> kNames = {"exec", "eval",    "globals", "locals",
                                                               "vars", "delattr", "execfile"};
    return call.items[0]->kind == PyExprKind::Name && isOneOf(kNames, call.items[0]->name);
}

StatementEffects statementEffects(const PyStmt& statement) {
    EffectCollector collector;
    collector.statement(statement);
    return std::move(collector.made);
}

StatementEffects blockEffects(const PyBlock& block) {
    EffectCollector collector;
    collector.block(block);
    return std::move(collector.made);
}

StatementEffects expressionEffects(const PyExpr& expr) {
    EffectCollector collector;
    collector.expression(&expr);
    return std::move(collector.made);
}

} // namespace vitrine::engine
