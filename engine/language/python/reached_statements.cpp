// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/reached_statements.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/language/python/statement_names.h"

namespace vitrine::engine {

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
