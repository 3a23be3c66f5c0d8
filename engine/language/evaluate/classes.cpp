// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/classes.h"

#include <algorithm>

namespace vitrine::engine {

PyFunction* PyClasses::bound(const PyFunction& function, PyValue self) {
    auto* const made = evaluation_.heap.make<PyFunction>();
    made->code = function.code;
    made->text = function.text;
    made->closure = function.closure;
    made->defaults = function.defaults;
    made->owner = function.owner;
    made->self = self;
    return made;
}

bool PyClasses::isCallable(PyValue value) {
    const PyObject* const object = value.object();
    if (object == nullptr) {
        return false;
    }
    switch (object->kind) {
    case PyKind::Function:
    case PyKind::Builtin:
    case PyKind::Partial:
    case PyKind::Combination:
    case PyKind::Class:
    case PyKind::Dtype:
    case PyKind::Ignored:
        return true;
    case PyKind::Instance:
        return value.as<PyInstance>()->type != nullptr && find(*value.as<PyInstance>()->type, "__call__").has_value();
    default:
        return false;
    }
}

PyValue PyClasses::instantiate(PyClass& type, PyCall& call) {
    auto* const made = evaluation_.heap.make<PyInstance>();
    made->type = &type;
    made->typeName = std::string(type.name);
    if (const auto init = find(type, "__init__")) {
        if (auto* const function = init->as<PyFunction>()) {
            caller_.callFunction(*bound(*function, made), call);
            return made;
        }
    }
    const std::vector<std::string_view> fields = fieldsOf(type);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (const auto value = call.optional(i, fields[i])) {
            made->attributes[std::string(fields[i])] = *value;
        } else if (const auto declared = find(type, fields[i])) {
            if (const auto fresh = fieldDefault(*declared)) {
                made->attributes[std::string(fields[i])] = *fresh;
            }
        }
    }
    call.finish();
    if (const auto after = find(type, "__post_init__")) {
        if (auto* const function = after->as<PyFunction>()) {
            PyCall none;
            caller_.callFunction(*bound(*function, made), none);
        }
    }
    return made;
}

// What dataclasses.field(default=...) or field(default_factory=...) gives each object.
std::optional<PyValue> PyClasses::fieldDefault(PyValue declared) {
    const auto* const field = declared.as<PyInstance>();
    if (field == nullptr || field->type != nullptr || field->typeName != "dataclasses.field") {
        return std::nullopt;
    }
    const auto factory = field->attributes.find("default_factory");
    if (factory != field->attributes.end()) {
        return caller_.call(factory->second, {});
    }
    const auto value = field->attributes.find("default");
    return value != field->attributes.end() ? std::optional(value->second) : std::nullopt;
}

// Those of the parents first.
std::vector<std::string_view> PyClasses::fieldsOf(const PyClass& type, int depth) {
    std::vector<std::string_view> made;
    for (const PyValue base : type.bases) {
        if (const auto* const parent = base.as<PyClass>(); parent != nullptr && depth < kMaxNesting) {
            evaluation_.step();
            made = fieldsOf(*parent, depth + 1);
        }
    }
    for (const std::string_view field : type.fields) {
        if (std::find(made.begin(), made.end(), field) == made.end()) {
            made.push_back(field);
        }
    }
    return made;
}

std::optional<PyValue> PyClasses::find(const PyClass& type, std::string_view name) {
    const auto found = declared(type, name);
    if (const auto* const poisoned = found ? found->as<PyPoison>() : nullptr) {
        throwPoison(*poisoned);
    }
    return found;
}

std::optional<PyValue> PyClasses::declared(const PyClass& type, std::string_view name, int depth) {
    evaluation_.step();
    const auto found = type.scope->names.find(name);
    if (found != type.scope->names.end()) {
        return found->second;
    }
    for (const PyValue base : type.bases) {
        if (const auto* const parent = base.as<PyClass>(); parent != nullptr && depth < kMaxNesting) {
            if (const auto inherited = declared(*parent, name, depth + 1)) {
                return inherited;
            }
        }
    }
    return std::nullopt;
}

bool PyClasses::isSubclass(const PyClass& type, const PyClass& of, int depth) {
    evaluation_.step();
    return &type == &of ||
           (depth < kMaxNesting && std::any_of(
                                       type.bases.begin(), type.bases.end(),
                                       [&](PyValue base) {
                                           const auto* const parent = base.as<PyClass>();
                                           return parent != nullptr && isSubclass(*parent, of, depth + 1);
                                       }));
}

PyValue PyClasses::boundMember(PyValue member, PyValue self) {
    auto* const function = member.as<PyFunction>();
    if (function == nullptr || function->isStatic) {
        return member;
    }
    const auto* const instance = self.as<PyInstance>();
    PyFunction* const made =
        bound(*function, function->isClassMethod && instance != nullptr ? PyValue(instance->type) : self);
    if (!function->isProperty) {
        return made;
    }
    PyCall none;
    return caller_.callFunction(*made, none);
}

PyValue PyClasses::parents() {
    if (evaluation_.running == nullptr || evaluation_.running->owner == nullptr || evaluation_.running->self.isNone()) {
        return evaluation_.heap.ignored("super()");
    }
    auto* const made = evaluation_.heap.make<PySuper>();
    made->owner = evaluation_.running->owner;
    made->self = evaluation_.running->self;
    return made;
}

std::optional<PyValue> PyClasses::memberOfParents(const PySuper& parents, std::string_view name) {
    for (const PyValue base : parents.owner->bases) {
        if (const auto* const parent = base.as<PyClass>()) {
            if (const auto found = find(*parent, name)) {
                return boundMember(*found, parents.self);
            }
        }
    }
    return evaluation_.heap.ignored("super()." + std::string(name)); // of a class of another module
}

std::optional<PyValue> PyClasses::special(PyValue object, std::string_view name,
                                          const std::vector<PyValue>& arguments) {
    const auto* const instance = object.as<PyInstance>();
    if (instance == nullptr || instance->type == nullptr) {
        return std::nullopt;
    }
    const auto found = find(*instance->type, name);
    return found ? std::optional(caller_.call(boundMember(*found, object), arguments)) : std::nullopt;
}

} // namespace vitrine::engine
