// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/skips.h"

#include <algorithm>
#include <fmt/format.h>

namespace vitrine::engine {

namespace {

const PyValue* valueOf(std::string_view name, const PyNamespace* scope) {
    for (const PyNamespace* at = scope; at != nullptr; at = at->parent) {
        const auto found = at->names.find(name);
        if (found != at->names.end()) {
            return &found->second;
        }
    }
    return nullptr;
}

bool canChange(PyValue value) {
    return value.as<PyTensor>() != nullptr || value.as<PyDict>() != nullptr || value.as<PyInstance>() != nullptr ||
           value.as<PyClass>() != nullptr || value.as<PyPartial>() != nullptr ||
           (value.as<PySequence>() != nullptr && value.object()->kind != PyKind::Tuple);
}

/// The attributes of an object or a class of the text.
bool hasAttributes(PyValue value) {
    return (value.as<PyInstance>() != nullptr && value.as<PyInstance>()->type != nullptr) ||
           value.as<PyClass>() != nullptr;
}

} // namespace

bool PySkips::isHarmlessCallee(const PyExpr& callee, const PyNamespace* scope, int depth) {
    const std::string_view root = rootName(callee);
    const PyValue* const value = root.empty() ? nullptr : valueOf(root, scope);
    if (value == nullptr) {
        return true;
    }
    if (const auto* const function = value->as<PyFunction>(); function != nullptr && callee.kind == PyExprKind::Name) {
        // The scope of the text stands for that of the call: a name that the call binds is looked up too widely only.
        const StatementEffects inside =
            function->code->result ? expressionEffects(*function->code->result) : blockEffects(function->code->body);
        return isHarmless(inside, function->closure, depth + 1);
    }
    return !canChange(*value) && value->as<PyFunction>() == nullptr;
}

bool PySkips::isHarmless(const StatementEffects& effects, const PyNamespace* scope, int depth) {
    constexpr int kDeepest = 6;
    services_.evaluation.steps(20 + static_cast<std::int64_t>(effects.exposed.size() + effects.callees.size()));
    if (effects.changes || depth > kDeepest || (depth > 0 && !effects.assigned.empty())) {
        return false;
    }
    std::set<const void*> seen;
    for (const std::string_view name : effects.exposed) {
        const PyValue* const value = valueOf(name, scope);
        if (value == nullptr) {
            continue;
        }
        std::set<const void*> objects;
        collectObjects(*value, objects);
        if (!objects.empty()) {
            return false;
        }
    }
    return std::all_of(effects.callees.begin(), effects.callees.end(),
                       [&](const PyExpr* callee) { return isHarmlessCallee(*callee, scope, depth); });
}

bool PySkips::poisonAttributes(const StatementEffects& effects, PyPoison* poisoned, bool apply) {
    for (const PyExpr* const target : effects.assigned) {
        const PyValue* const object = valueOf(target->items[0]->name, services_.evaluation.scope);
        if (target->items[0]->kind != PyExprKind::Name || object == nullptr || !hasAttributes(*object)) {
            return false;
        }
        if (!apply) {
            continue;
        }
        if (auto* const instance = object->as<PyInstance>()) {
            instance->attributes[std::string(target->name)] = poisoned;
        } else {
            object->as<PyClass>()->scope->names[target->name] = poisoned;
        }
    }
    return true;
}

bool PySkips::skip(const PyStmt& statement, const PyError& error) {
    Evaluation& evaluation = services_.evaluation;
    // Statements of a class are those of a module: what is wrong with a member matters where it is read.
    if (evaluation.tries > 0 || evaluation.outOfSteps() || (!error.notKnownHere() && !evaluation.scope->isClass)) {
        return false;
    }
    const StatementEffects effects = statementEffects(statement);
    if (effects.leaves || !isHarmless(effects, evaluation.scope, 0) || !poisonAttributes(effects, nullptr, false)) {
        return false;
    }
    // A failure costs a walk over the statement and, for its place, over the text.
    evaluation.steps(50 + static_cast<std::int64_t>(evaluation.text->file.text.size() / 256));
    PyPoison* const poisoned = evaluation.poison(error);
    poisonAttributes(effects, poisoned, true);
    for (const std::string_view name : statementNames(statement).binds) {
        names_.bind(name, poisoned, *evaluation.scope);
    }
    evaluation.range = statement.range;
    evaluation.note(fmt::format("passed over, nothing that the program reads comes of it: {}", error.description()));
    return true;
}

PyPoison* PySkips::unneeded(const PyExpr& expr, const PyError& error) {
    Evaluation& evaluation = services_.evaluation;
    const bool passes = error.notKnownHere() && evaluation.tries == 0 && !evaluation.outOfSteps() &&
                        isHarmless(expressionEffects(expr), evaluation.scope, 0);
    return passes ? evaluation.poison(error) : nullptr;
}

void PySkips::collectObjects(PyValue value, std::set<const void*>& objects) {
    std::vector<PyValue> open = {value};
    while (!open.empty()) {
        const PyValue next = open.back();
        open.pop_back();
        const auto* const sequence = next.as<PySequence>();
        const bool tuple = sequence != nullptr && sequence->kind == PyKind::Tuple;
        if ((!canChange(next) && !tuple) || (!tuple && !objects.insert(next.object()).second)) {
            continue;
        }
        services_.evaluation.step();
        if (sequence != nullptr) {
            services_.evaluation.steps(static_cast<std::int64_t>(sequence->items.size() / 16));
            open.insert(open.end(), sequence->items.begin(), sequence->items.end());
        } else if (const auto* const tensor = next.as<PyTensor>()) {
            objects.insert(tensor->storage.get());
        } else if (const auto* const dict = next.as<PyDict>()) {
            for (const auto& [key, entry] : dict->entries) {
                open.push_back(entry);
            }
        } else if (const auto* const instance = next.as<PyInstance>()) {
            for (const auto& [name, attribute] : instance->attributes) {
                open.push_back(attribute);
            }
        } else if (const auto* const partial = next.as<PyPartial>()) {
            open.insert(open.end(), partial->arguments.begin(), partial->arguments.end());
        }
    }
}

std::set<std::string_view> PySkips::effectsOf(const StatementNames& names, const PyNamespace& scope) {
    std::set<std::string_view> made;
    std::set<std::string_view> seen;
    std::vector<std::string_view> open(names.calls.begin(), names.calls.end());
    const auto addCalls = [&](const PyFunction& function) {
        const StatementNames inside = functionNames(*function.code);
        services_.evaluation.steps(20);
        made.insert(inside.effects.begin(), inside.effects.end());
        open.insert(open.end(), inside.innerCalls.begin(), inside.innerCalls.end());
        if (inside.changesArguments) {
            made.insert(names.handed.begin(), names.handed.end());
        }
    };
    const auto addMembers = [&](const PyClass& type, std::string_view called) {
        for (const auto& [name, member] : type.scope->names) {
            const auto* const method = member.as<PyFunction>();
            if (method != nullptr && (name == called || type.name == called)) {
                addCalls(*method);
            }
        }
    };
    while (!open.empty()) {
        const std::string_view called = open.back();
        open.pop_back();
        if (!seen.insert(called).second) {
            continue;
        }
        for (const auto& [name, value] : scope.names) {
            services_.evaluation.step();
            if (const auto* const function = value.as<PyFunction>(); function != nullptr && name == called) {
                addCalls(*function);
            } else if (const auto* const type = value.as<PyClass>()) {
                addMembers(*type, called);
            }
        }
    }
    return made;
}

void PySkips::poisonModule(const PyStmt& statement, const PyError& error, PyNamespace& scope) {
    PyPoison* const poisoned = services_.evaluation.poison(error);
    const StatementNames names = statementNames(statement);
    std::set<std::string_view> changed = names.changes;
    changed.insert(names.given.begin(), names.given.end());
    const StatementEffects effects = statementEffects(statement);
    if (statement.kind == PyStmtKind::Assign && !effects.assigned.empty() && !effects.changes &&
        poisonAttributes(effects, poisoned, true)) {
        changed = names.given;
    }
    for (const AliasNames& alias : names.aliases) {
        if (std::any_of(alias.targets.begin(), alias.targets.end(),
                        [&changed](std::string_view name) { return changed.count(name) != 0; })) {
            changed.insert(alias.sources.begin(), alias.sources.end());
        }
    }
    const std::set<std::string_view> called = effectsOf(names, scope);
    changed.insert(called.begin(), called.end());
    std::set<const void*> objects;
    for (const std::string_view name : changed) {
        const auto found = scope.names.find(name);
        if (found != scope.names.end()) {
            collectObjects(found->second, objects);
        }
    }
    for (const std::string_view name : names.binds) {
        scope.names[name] = poisoned;
    }
    for (const std::string_view name : called) {
        const auto found = scope.names.find(name);
        if (found != scope.names.end() && names.handed.count(name) == 0) {
            found->second = poisoned;
        }
    }
    if (objects.empty()) {
        return;
    }
    for (auto& [name, value] : scope.names) {
        std::set<const void*> held;
        collectObjects(value, held);
        if (std::any_of(held.begin(), held.end(), [&](const void* one) { return objects.count(one) != 0; })) {
            value = poisoned;
        }
    }
}

} // namespace vitrine::engine
