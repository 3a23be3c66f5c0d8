// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/statement_names.h"

#include <algorithm>

#include "engine/language/python/exposed_names.h"

namespace vitrine::engine {

namespace {

class Collector {
public:
    StatementNames names;

    void expression(const PyExpr* expr) {
        if (expr == nullptr) {
            return;
        }
        if (expr->kind == PyExprKind::Name) {
            names.reads.insert(expr->name);
        } else if (expr->kind == PyExprKind::Walrus) {
            names.binds.insert(expr->name);
            alias({expr->name}, *expr->items[0]);
        } else if (expr->kind == PyExprKind::Call) {
            call(*expr);
        }
        for (const PyExprPtr& item : expr->items) {
            expression(item.get());
        }
        if (!expr->extra) {
            return;
        }
        for (const PyClause& clause : expr->extra->clauses) {
            expression(clause.iterable.get());
            expression(clause.target.get());
            aliasTarget(*clause.target, *clause.iterable);
            for (const PyExprPtr& condition : clause.conditions) {
                expression(condition.get());
            }
        }
        if (expr->extra->lambda) {
            function(*expr->extra->lambda);
        }
    }

    void function(const PyFunctionCode& code) {
        for (const PyParameter& parameter : code.parameters) {
            expression(parameter.value.get());
        }
        decorators(code.decorators);
        // Names that the body binds are its own, but "global" ones; reading too much only costs time.
        Collector inner;
        inner.expression(code.result.get());
        inner.block(code.body);
        names.reads.merge(inner.names.reads);
        names.effects.insert(inner.globals_.begin(), inner.globals_.end());
        names.innerCalls.merge(inner.names.calls);
        names.innerCalls.merge(inner.names.innerCalls);
        std::set<std::string_view> own = std::move(inner.names.binds);
        for (const PyParameter& parameter : code.parameters) {
            own.insert(parameter.name);
        }
        if (own.count(kAnyName) != 0) {
            names.effects.insert(kAnyName);
        }
        followAliases(inner.names);
        for (const PyParameter& parameter : code.parameters) {
            names.changesArguments = names.changesArguments || inner.names.changes.count(parameter.name) != 0;
        }
        names.changesArguments = names.changesArguments || inner.names.changesArguments;
        inner.names.changes.merge(inner.names.effects);
        for (const std::string_view name : inner.names.changes) {
            if (own.count(name) == 0) {
                names.effects.insert(name);
            }
        }
    }

    void block(const PyBlock& statements) {
        for (const std::unique_ptr<PyStmt>& statement : statements) {
            this->statement(*statement);
        }
    }

    void statement(const PyStmt& statement) {
        switch (statement.kind) {
        case PyStmtKind::Assign:
            for (std::size_t i = 0; i + 1 < statement.exprs.size(); ++i) {
                target(*statement.exprs[i]);
                aliasTarget(*statement.exprs[i], *statement.exprs.back());
            }
            expression(statement.exprs.back().get());
            break;
        case PyStmtKind::AugmentedAssign:
            target(*statement.exprs[0]);
            aliasTarget(*statement.exprs[0], *statement.exprs[1]);
            change(*statement.exprs[0]); // a list or a tensor has other names that see it
            expression(statement.exprs[0].get());
            expression(statement.exprs[1].get());
            break;
        case PyStmtKind::AnnotatedAssign:
            if (statement.exprs[2]) {
                target(*statement.exprs[0]);
                aliasTarget(*statement.exprs[0], *statement.exprs[2]);
                expression(statement.exprs[2].get());
            }
            break;
        case PyStmtKind::For:
            target(*statement.exprs[0]);
            aliasTarget(*statement.exprs[0], *statement.exprs[1]);
            expression(statement.exprs[1].get());
            break;
        case PyStmtKind::With:
            for (std::size_t i = 0; i < statement.exprs.size(); i += 2) {
                expression(statement.exprs[i].get());
                if (statement.exprs[i + 1]) {
                    target(*statement.exprs[i + 1]);
                    aliasTarget(*statement.exprs[i + 1], *statement.exprs[i]);
                }
            }
            break;
        case PyStmtKind::Def:
            names.binds.insert(statement.function->name);
            function(*statement.function);
            break;
        case PyStmtKind::Class: {
            names.binds.insert(statement.name);
            expressions(statement.exprs);
            decorators(statement.decorators);
            classBody(statement.blocks[0]);
            return;
        }
        case PyStmtKind::Delete:
            target(*statement.exprs[0]);
            break;
        case PyStmtKind::Import:
        case PyStmtKind::ImportFrom:
            imports(statement);
            break;
        case PyStmtKind::TypeAlias:
            names.binds.insert(statement.name);
            break;
        case PyStmtKind::Global:
            for (const PyAlias& alias : statement.aliases) {
                globals_.insert(alias.name);
            }
            break;
        case PyStmtKind::Match:
            expressions(statement.exprs);
            patterns(statement.patterns);
            break;
        case PyStmtKind::Expression:
            expression(statement.exprs[0].get());
            changed(*statement.exprs[0]);
            break;
        default:
            expressions(statement.exprs);
            break;
        }
        for (const PyBlock& inner : statement.blocks) {
            block(inner);
        }
    }

private:
    void imports(const PyStmt& statement) {
        for (const PyAlias& alias : statement.aliases) {
            if (statement.kind == PyStmtKind::ImportFrom) {
                names.binds.insert(alias.asName.empty() ? alias.name : alias.asName);
                names.reads.insert(alias.name);
            } else {
                names.binds.insert(alias.asName.empty() ? alias.name.substr(0, alias.name.find('.')) : alias.asName);
            }
        }
    }

    void expressions(const std::vector<PyExprPtr>& exprs) {
        for (const PyExprPtr& expr : exprs) {
            expression(expr.get());
        }
    }

    void patterns(const std::vector<PyPattern>& all) {
        for (const PyPattern& pattern : all) {
            if (!pattern.name.empty()) {
                names.binds.insert(pattern.name);
            }
            expression(pattern.value.get());
            patterns(pattern.items);
        }
    }

    /// A decorator is called, whether it is written as a call or not.
    void decorators(const std::vector<PyExprPtr>& exprs) {
        for (const PyExprPtr& expr : exprs) {
            expression(expr.get());
            if (expr->kind == PyExprKind::Name) {
                names.calls.insert(expr->name);
            }
        }
    }

    void target(const PyExpr& expr) {
        switch (expr.kind) {
        case PyExprKind::Name:
            names.binds.insert(expr.name);
            return;
        case PyExprKind::Attribute:
        case PyExprKind::Subscript:
            expression(&expr);
            base(*expr.items[0]);
            return;
        default:
            for (const PyExprPtr& item : expr.items) {
                target(*item);
            }
        }
    }

    /// What changes an object by one of its names changes it for the others.
    static void followAliases(StatementNames& names) {
        constexpr int kLongestChain = 16;
        bool more = true;
        for (int round = 0; more && round < kLongestChain; ++round) {
            more = false;
            for (const AliasNames& alias : names.aliases) {
                const bool changed = std::any_of(alias.targets.begin(), alias.targets.end(),
                                                 [&](std::string_view name) { return names.changes.count(name) != 0; });
                if (changed) {
                    const std::size_t before = names.changes.size();
                    names.changes.insert(alias.sources.begin(), alias.sources.end());
                    more = more || names.changes.size() != before;
                }
            }
        }
    }

    /// The body of a class is executed with it, its methods are called later.
    void classBody(const PyBlock& body) {
        Collector inner;
        inner.block(body);
        followAliases(inner.names);
        names.reads.merge(inner.names.reads);
        names.calls.merge(inner.names.calls);
        names.handed.merge(inner.names.handed);
        names.given.merge(inner.names.given);
        names.effects.merge(inner.names.effects);
        names.innerCalls.merge(inner.names.innerCalls);
        names.changesArguments = names.changesArguments || inner.names.changesArguments;
        for (const std::string_view name : inner.names.changes) {
            if (inner.names.binds.count(name) == 0) {
                names.changes.insert(name);
            }
        }
        names.binds.insert(inner.globals_.begin(), inner.globals_.end());
        names.methods.merge(inner.names.binds);
    }

    void call(const PyExpr& expr) {
        const PyExpr& callee = *expr.items[0];
        if (callee.kind == PyExprKind::Name || callee.kind == PyExprKind::Attribute) {
            names.calls.insert(callee.name);
        }
        if (onlyShows(expr)) {
            return;
        }
        if (callee.kind == PyExprKind::Name && callee.name == "exec") {
            names.binds.insert(kAnyName);
        }
        if (callee.kind == PyExprKind::Name && (callee.name == "setattr" || callee.name == "delattr") &&
            expr.items.size() > 1) {
            base(*expr.items[1]);
        }
        std::set<std::string_view> arguments;
        for (std::size_t i = 1; i < expr.items.size(); ++i) {
            exposedNames(*expr.items[i], arguments);
        }
        if (callee.kind == PyExprKind::Attribute) {
            if (isMutator(callee.name)) {
                base(*callee.items[0]);
            }
            const std::string_view root = rootName(*callee.items[0]);
            if (!root.empty()) {
                names.handed.insert(root);
            }
            if (!root.empty() && !arguments.empty()) {
                names.aliases.push_back({{root}, arguments}); // a list keeps what it is given
            }
            if (callee.name.back() == '_') {
                names.changes.insert(arguments.begin(), arguments.end()); // nn.init.normal_(table)
            }
        }
        names.handed.merge(arguments);
    }

    void alias(std::set<std::string_view> targets, const PyExpr& source) {
        AliasNames made{std::move(targets), {}};
        exposedNames(source, made.sources);
        if (!made.sources.empty()) {
            names.aliases.push_back(std::move(made));
        }
    }

    void aliasTarget(const PyExpr& target, const PyExpr& source) {
        std::set<std::string_view> targets;
        exposedNames(target, targets);
        alias(std::move(targets), source);
    }

    void change(const PyExpr& target) {
        if (target.kind == PyExprKind::Name) {
            names.changes.insert(target.name);
        }
    }

    /// What "x[i] = ...", "x.append(...)" and "x.diagonal().zero_()" change.
    void base(const PyExpr& expr) {
        if (expr.kind == PyExprKind::Call && reachesEverything(expr) && expr.items.size() == 1) {
            names.binds.insert(kAnyName); // globals()["x"] = ...
        } else if (expr.kind == PyExprKind::Attribute && expr.name == "modules" && rootName(expr) == "sys") {
            names.binds.insert(kAnyName); // sys.modules[__name__].x = ...
        } else if (expr.kind == PyExprKind::Name) {
            names.changes.insert(expr.name);
        } else if (expr.kind == PyExprKind::Attribute || expr.kind == PyExprKind::Subscript ||
                   expr.kind == PyExprKind::Call) {
            base(*expr.items[0]);
        }
    }

    void changed(const PyExpr& expr) {
        if (expr.kind != PyExprKind::Call) {
            return;
        }
        if (onlyShows(expr)) {
            return;
        }
        if (expr.items[0]->kind == PyExprKind::Attribute) {
            base(*expr.items[0]->items[0]);
        }
        // Functions of torch change their arguments only where their names end with "_".
        const std::string_view root = rootName(*expr.items[0]);
        for (std::size_t i = 1; i < expr.items.size() && root != "torch" && root != "F"; ++i) {
            exposedNames(*expr.items[i], names.given);
        }
    }

    std::set<std::string_view> globals_;
};

} // namespace

StatementNames statementNames(const PyStmt& statement) {
    Collector collector;
    collector.statement(statement);
    return std::move(collector.names);
}

StatementNames functionNames(const PyFunctionCode& code) {
    Collector collector;
    collector.function(code);
    return std::move(collector.names);
}

std::set<std::string_view> expressionNames(const PyExpr& expr) {
    Collector collector;
    collector.expression(&expr);
    return std::move(collector.names.reads);
}

} // namespace vitrine::engine
