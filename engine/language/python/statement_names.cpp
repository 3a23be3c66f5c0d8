// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/statement_names.h"

#include <algorithm>
#include <unordered_map>

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
        if (inner.names.binds.count(kAnyName) != 0) {
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

std::set<std::string_view> expressionNames(const PyExpr& expr) {
    Collector collector;
    collector.expression(&expr);
    return std::move(collector.names.reads);
}

namespace {

/// Which statements `wanted` needs: those that bind or change its names, in calls of functions too.
class Reach {
public:
    Reach(const std::vector<const PyStmt*>& body, const std::set<std::string_view>& wanted)
        : taken_(body.size(), false), seen_(wanted), open_(wanted.begin(), wanted.end()) {
        for (const PyStmt* const statement : body) {
            if (statement->kind == PyStmtKind::Def || statement->kind == PyStmtKind::Class) {
                defined_.insert(statement->kind == PyStmtKind::Def ? statement->function->name : statement->name);
            }
            add(statementNames(*statement));
        }
        open_.push_back(kAnyName);
        while (!open_.empty()) {
            const std::string_view name = open_.back();
            open_.pop_back();
            takeAll(binders_, name);
            forEach(affecting_, name, [this](std::string_view function) { takeCallsOf(function); });
            takeChangesOf(name);
        }
    }

    bool taken(std::size_t statement) const { return taken_[statement]; }

private:
    template <class T> using Table = std::unordered_multimap<std::string_view, T>;

    template <class T, class Visit>
    static void forEach(const Table<T>& table, std::string_view name, const Visit& visit) {
        for (auto [at, end] = table.equal_range(name); at != end; ++at) {
            visit(at->second);
        }
    }

    void add(StatementNames names) {
        const std::size_t at = names_.size();
        for (const std::string_view name : names.binds) {
            binders_.emplace(name, at);
        }
        for (const std::string_view name : names.changes) {
            changing_.emplace(name, at);
        }
        for (const std::string_view name : names.given) {
            giving_.emplace(name, at);
        }
        for (std::size_t i = 0; i < names.aliases.size(); ++i) {
            for (const std::string_view source : names.aliases[i].sources) {
                aliasing_.emplace(source, std::pair(at, i));
            }
        }
        for (const std::string_view name : names.calls) {
            callers_.emplace(name, at);
        }
        for (const std::string_view name : names.handed) {
            handing_.emplace(name, at);
        }
        std::set<std::string_view> functions = names.binds;
        functions.insert(names.methods.begin(), names.methods.end());
        for (const std::string_view function : functions) {
            for (const std::string_view name : names.effects) {
                affecting_.emplace(name, function);
            }
            for (const std::string_view callee : names.innerCalls) {
                outer_.emplace(callee, function);
            }
            if (names.changesArguments) {
                changers_.insert(function);
            }
        }
        names_.push_back(std::move(names));
    }

    void take(std::size_t at) {
        if (taken_[at]) {
            return;
        }
        taken_[at] = true;
        for (const std::string_view read : names_[at].reads) {
            if (seen_.insert(read).second) {
                open_.push_back(read);
            }
        }
    }

    /// Of the object that a wanted name has, by any of its names.
    void takeChangesOf(std::string_view wanted) {
        std::vector<std::string_view> open = {wanted};
        while (!open.empty()) {
            const std::string_view name = open.back();
            open.pop_back();
            if (!followed_.insert(name).second) {
                continue;
            }
            takeAll(changing_, name);
            forEach(handing_, name, [this](std::size_t at) {
                if (callsAny(at, changers_)) {
                    take(at);
                }
            });
            forEach(giving_, name, [this](std::size_t at) {
                if (!callsAny(at, defined_)) {
                    take(at);
                }
            });
            forEach(aliasing_, name, [&](std::pair<std::size_t, std::size_t> at) {
                for (const std::string_view target : names_[at.first].aliases[at.second].targets) {
                    open.push_back(target);
                }
                names_[at.first].aliases[at.second].targets.clear(); // followed once
            });
        }
    }

    bool callsAny(std::size_t at, const std::set<std::string_view>& functions) const {
        return std::any_of(names_[at].calls.begin(), names_[at].calls.end(),
                           [&](std::string_view function) { return functions.count(function) != 0; });
    }

    void takeAll(const Table<std::size_t>& table, std::string_view name) {
        forEach(table, name, [this](std::size_t at) { take(at); });
    }

    /// Calls from other functions too: what calls those does the same.
    void takeCallsOf(std::string_view function) {
        std::vector<std::string_view> functions = {function};
        while (!functions.empty()) {
            const std::string_view name = functions.back();
            functions.pop_back();
            if (!called_.insert(name).second) {
                continue;
            }
            takeAll(callers_, name);
            forEach(outer_, name, [&](std::string_view caller) { functions.push_back(caller); });
        }
    }

    std::vector<StatementNames> names_;
    std::vector<bool> taken_;
    std::set<std::string_view> seen_;
    std::vector<std::string_view> open_;
    Table<std::size_t> binders_, changing_, callers_, handing_, giving_; ///< statements by name
    Table<std::pair<std::size_t, std::size_t>> aliasing_;                ///< statement and place among its aliases
    std::set<std::string_view> defined_;                                 ///< functions and classes
    std::set<std::string_view> followed_;                                ///< whose changes are taken
    Table<std::string_view> affecting_;                                  ///< functions by what calling them changes
    Table<std::string_view> outer_;                                      ///< functions by what they call
    std::set<std::string_view> changers_;                                ///< functions that change what they are given
    std::set<std::string_view> called_;                                  ///< whose calls are taken
};

} // namespace

std::vector<const PyStmt*> reachedStatements(const std::vector<const PyStmt*>& body,
                                             const std::set<std::string_view>& wanted) {
    const Reach reach(body, wanted);
    std::vector<const PyStmt*> reached;
    for (std::size_t i = 0; i < body.size(); ++i) {
        if (reach.taken(i)) {
            reached.push_back(body[i]);
        }
    }
    return reached;
}

} // namespace vitrine::engine
