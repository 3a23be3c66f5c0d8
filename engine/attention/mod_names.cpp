// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/attention/mod_names.h"

#include <map>

namespace vitrine::engine {

namespace {

class Collector {
public:
    ModNames names;

    void expression(const PyExpr* expr) {
        if (expr == nullptr) {
            return;
        }
        if (expr->kind == PyExprKind::Name) {
            names.reads.insert(expr->name);
        } else if (expr->kind == PyExprKind::Walrus) {
            names.binds.insert(expr->name);
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
            for (const PyExprPtr& condition : clause.conditions) {
                expression(condition.get());
            }
        }
        if (expr->extra->lambda) {
            function(*expr->extra->lambda);
        }
    }

    void function(const PyFunction& code) {
        for (const PyParameter& parameter : code.parameters) {
            expression(parameter.value.get());
        }
        for (const PyExprPtr& decorator : code.decorators) {
            expression(decorator.get());
        }
        // Names that the body binds are its own, but "global" ones; reading too much only costs time.
        Collector inner;
        inner.expression(code.result.get());
        inner.block(code.body);
        names.reads.merge(inner.names.reads);
        for (const std::string_view name : inner.globals_) {
            names.binds.insert(name);
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
            }
            expression(statement.exprs.back().get());
            break;
        case PyStmtKind::AugmentedAssign:
            target(*statement.exprs[0]);
            expression(statement.exprs[0].get());
            expression(statement.exprs[1].get());
            break;
        case PyStmtKind::AnnotatedAssign:
            if (statement.exprs[2]) {
                target(*statement.exprs[0]);
                expression(statement.exprs[2].get());
            }
            break;
        case PyStmtKind::For:
            target(*statement.exprs[0]);
            expression(statement.exprs[1].get());
            break;
        case PyStmtKind::With:
            for (std::size_t i = 0; i < statement.exprs.size(); i += 2) {
                expression(statement.exprs[i].get());
                if (statement.exprs[i + 1]) {
                    target(*statement.exprs[i + 1]);
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
            expressions(statement.decorators);
            Collector inner;
            inner.block(statement.blocks[0]);
            names.reads.merge(inner.names.reads);
            return;
        }
        case PyStmtKind::Import:
            for (const PyAlias& alias : statement.aliases) {
                names.binds.insert(alias.asName.empty() ? alias.name.substr(0, alias.name.find('.')) : alias.asName);
            }
            break;
        case PyStmtKind::ImportFrom:
            for (const PyAlias& alias : statement.aliases) {
                names.binds.insert(alias.asName.empty() ? alias.name : alias.asName);
                names.reads.insert(alias.name);
            }
            break;
        case PyStmtKind::TypeAlias:
            names.binds.insert(statement.name);
            break;
        case PyStmtKind::Global:
            for (const PyAlias& alias : statement.aliases) {
                globals_.insert(alias.name);
            }
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
    void expressions(const std::vector<PyExprPtr>& exprs) {
        for (const PyExprPtr& expr : exprs) {
            expression(expr.get());
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

    /// What "x[i] = ...", "x.append(...)" and "x.diagonal().zero_()" change.
    void base(const PyExpr& expr) {
        if (expr.kind == PyExprKind::Name) {
            names.changes.insert(expr.name);
        } else if (expr.kind == PyExprKind::Attribute || expr.kind == PyExprKind::Subscript ||
                   expr.kind == PyExprKind::Call) {
            base(*expr.items[0]);
        }
    }

    void changed(const PyExpr& expr) {
        if (expr.kind == PyExprKind::Call && expr.items[0]->kind == PyExprKind::Attribute) {
            base(*expr.items[0]->items[0]);
        }
    }

    std::set<std::string_view> globals_;
};

} // namespace

ModNames statementNames(const PyStmt& statement) {
    Collector collector;
    collector.statement(statement);
    return std::move(collector.names);
}

std::set<std::string_view> expressionNames(const PyExpr& expr) {
    Collector collector;
    collector.expression(&expr);
    return std::move(collector.names.reads);
}

std::vector<const PyStmt*> reachedStatements(const std::vector<const PyStmt*>& body,
                                             const std::set<std::string_view>& wanted) {
    std::vector<ModNames> names;
    std::multimap<std::string_view, std::size_t> binders;
    for (const PyStmt* const statement : body) {
        names.push_back(statementNames(*statement));
        for (const std::string_view name : names.back().binds) {
            binders.emplace(name, names.size() - 1);
        }
        for (const std::string_view name : names.back().changes) {
            binders.emplace(name, names.size() - 1);
        }
    }
    std::set<std::string_view> seen = wanted;
    std::vector<std::string_view> open(wanted.begin(), wanted.end());
    std::vector<bool> taken(body.size(), false);
    while (!open.empty()) {
        const std::string_view name = open.back();
        open.pop_back();
        for (auto [at, end] = binders.equal_range(name); at != end; ++at) {
            if (taken[at->second]) {
                continue;
            }
            taken[at->second] = true;
            for (const std::string_view read : names[at->second].reads) {
                if (seen.insert(read).second) {
                    open.push_back(read);
                }
            }
        }
    }
    std::vector<const PyStmt*> reached;
    for (std::size_t i = 0; i < body.size(); ++i) {
        if (taken[i]) {
            reached.push_back(body[i]);
        }
    }
    return reached;
}

} // namespace vitrine::engine
