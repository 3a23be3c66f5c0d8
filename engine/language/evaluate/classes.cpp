// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Classes of the text: their objects, members, parents.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>

#include "engine/language/evaluate/evaluator.h"
#include "engine/language/evaluate/scope.h"

namespace vitrine::engine {

namespace {

std::string_view lastName(std::string_view dotted) {
    const std::size_t dot = dotted.rfind('.');
    return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

} // namespace

ModFunction* ModEvaluator::bound(const ModFunction& function, ModValue self) {
    auto* const made = heap_.make<ModFunction>();
    made->code = function.code;
    made->text = function.text;
    made->closure = function.closure;
    made->defaults = function.defaults;
    made->owner = function.owner;
    made->self = self;
    return made;
}

ModValue ModEvaluator::callClass(ModClass& type, ModCall& call) {
    auto* const made = heap_.make<ModInstance>();
    made->type = &type;
    made->typeName = std::string(type.name);
    if (const auto init = findInClass(type, "__init__", 0)) {
        if (auto* const function = init->as<ModFunction>()) {
            callFunction(*bound(*function, made), call);
            return made;
        }
    }
    const std::vector<std::string_view> fields = fieldsOf(type, 0);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        if (const auto value = call.optional(i, fields[i])) {
            made->attributes[std::string(fields[i])] = *value;
        } else if (const auto declared = findInClass(type, fields[i], 0)) {
            if (const auto fresh = fieldDefault(*declared)) {
                made->attributes[std::string(fields[i])] = *fresh;
            }
        }
    }
    call.finish();
    if (const auto after = findInClass(type, "__post_init__", 0)) {
        if (auto* const function = after->as<ModFunction>()) {
            ModCall none;
            callFunction(*bound(*function, made), none);
        }
    }
    return made;
}

/// What dataclasses.field(default=...) or field(default_factory=...) gives each object.
std::optional<ModValue> ModEvaluator::fieldDefault(ModValue declared) {
    const auto* const field = declared.as<ModInstance>();
    if (field == nullptr || field->type != nullptr || field->typeName != "dataclasses.field") {
        return std::nullopt;
    }
    const auto factory = field->attributes.find("default_factory");
    if (factory != field->attributes.end()) {
        return call(factory->second, {});
    }
    const auto value = field->attributes.find("default");
    return value != field->attributes.end() ? std::optional(value->second) : std::nullopt;
}

/// Those of the parents first.
std::vector<std::string_view> ModEvaluator::fieldsOf(const ModClass& type, int depth) {
    std::vector<std::string_view> made;
    for (const ModValue base : type.bases) {
        if (const auto* const parent = base.as<ModClass>(); parent != nullptr && depth < kMaxModNesting) {
            step();
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

std::optional<ModValue> ModEvaluator::findInClass(const ModClass& type, std::string_view name, int depth) {
    step();
    const auto found = type.scope->names.find(name);
    if (found != type.scope->names.end()) {
        return found->second;
    }
    for (const ModValue base : type.bases) {
        if (const auto* const parent = base.as<ModClass>(); parent != nullptr && depth < kMaxModNesting) {
            if (const auto inherited = findInClass(*parent, name, depth + 1)) {
                return inherited;
            }
        }
    }
    return std::nullopt;
}

bool ModEvaluator::isSubclass(const ModClass& type, const ModClass& of, int depth) {
    step();
    return &type == &of ||
           (depth < kMaxModNesting && std::any_of(
                                          type.bases.begin(), type.bases.end(),
                                          [&](ModValue base) {
                                              const auto* const parent = base.as<ModClass>();
                                              return parent != nullptr && isSubclass(*parent, of, depth + 1);
                                          }));
}

ModValue ModEvaluator::boundMember(ModValue member, ModValue self) {
    auto* const function = member.as<ModFunction>();
    if (function == nullptr || function->isStatic) {
        return member;
    }
    const auto* const instance = self.as<ModInstance>();
    ModFunction* const made =
        bound(*function, function->isClassMethod && instance != nullptr ? ModValue(instance->type) : self);
    if (!function->isProperty) {
        return made;
    }
    ModCall none;
    return callFunction(*made, none);
}

ModValue ModEvaluator::parents() {
    if (running_ == nullptr || running_->owner == nullptr || running_->self.isNone()) {
        return heap_.ignored("super()");
    }
    auto* const made = heap_.make<ModSuper>();
    made->owner = running_->owner;
    made->self = running_->self;
    return made;
}

std::optional<ModValue> ModEvaluator::memberOfParents(const ModSuper& parents, std::string_view name) {
    for (const ModValue base : parents.owner->bases) {
        if (const auto* const parent = base.as<ModClass>()) {
            if (const auto found = findInClass(*parent, name, 0)) {
                return boundMember(*found, parents.self);
            }
        }
    }
    return heap_.ignored("super()." + std::string(name)); // of a class of another module
}

// enum.auto() is one more than the member before.
void ModEvaluator::numberMembers(const PyBlock& block) {
    std::int64_t last = 0;
    for (const std::unique_ptr<PyStmt>& member : block) {
        if (member->kind != PyStmtKind::Assign || member->exprs[0]->kind != PyExprKind::Name) {
            continue;
        }
        const auto found = scope_->names.find(member->exprs[0]->name);
        if (found == scope_->names.end()) {
            continue;
        }
        const auto* const ignored = found->second.as<ModIgnored>();
        if (ignored != nullptr && ignored->what == "enum.auto") {
            found->second = ModValue::integer(last < std::numeric_limits<std::int64_t>::max() ? last + 1 : last);
        }
        last = found->second.kind() == ModValue::Kind::Int ? found->second.integer() : last;
    }
}

void ModEvaluator::executeClass(const PyStmt& statement) {
    auto* const made = heap_.make<ModClass>();
    made->name = statement.name;
    made->scope = heap_.scope(scope_);
    made->scope->isClass = true;
    for (const PyExprPtr& base : statement.exprs) {
        const std::string_view last =
            lastName(std::string_view(text_->file.text).substr(base->range.begin, base->range.end - base->range.begin));
        made->isAutogradFunction = made->isAutogradFunction || last == "Function";
        made->isData = made->isData || last == "NamedTuple";
        made->isModule = made->isModule || last == "Module";
        if (base->kind == PyExprKind::Name) {
            for (ModScope* scope = scope_; scope != nullptr; scope = scope->parent) {
                const auto found = scope->names.find(base->name);
                if (found != scope->names.end()) {
                    made->bases.push_back(found->second);
                    const auto* const parent = found->second.as<ModClass>();
                    made->isModule = made->isModule || (parent != nullptr && parent->isModule);
                    break;
                }
            }
        }
    }
    for (const std::unique_ptr<PyStmt>& member : statement.blocks[0]) {
        if (member->kind == PyStmtKind::AnnotatedAssign && member->exprs[0]->kind == PyExprKind::Name) {
            made->fields.push_back(member->exprs[0]->name);
        }
    }
    {
        const Inside inside(*this, text_, made->scope);
        execute(statement.blocks[0]);
        numberMembers(statement.blocks[0]);
    }
    for (const auto& [name, member] : made->scope->names) {
        auto* const function = member.as<ModFunction>();
        if (function != nullptr && function->closure == made->scope) {
            function->owner = made;
        }
    }
    ModValue value = made;
    for (std::size_t i = statement.decorators.size(); i-- > 0;) {
        value = decorate(value, *statement.decorators[i]);
    }
    bind(statement.name, value, *scope_);
}

namespace {

ModInstance& instanceOf(ModCall& call) {
    auto* const made = call.required(0, "self").as<ModInstance>();
    if (made == nullptr) {
        ModEvaluator::fail("this is a method of a module");
    }
    return *made;
}

/// register_buffer(name, tensor), register_parameter.
ModValue registered(ModEvaluator& evaluator, ModCall& call) {
    const std::string name = evaluator.text(call.required(1, "name"), "the name");
    const ModValue value = call.required(2, "tensor");
    static_cast<void>(call.optional(3, "persistent"));
    if (auto* const tensor = value.as<ModTensor>(); tensor != nullptr && tensor->name.empty()) {
        tensor->name = name;
    }
    instanceOf(call).attributes[name] = value;
    return {};
}

ModValue itself(ModEvaluator& /*evaluator*/, ModCall& call) {
    return call.required(0, "self");
}

ModValue fieldOf(ModEvaluator& evaluator, ModCall& call) {
    auto* const made = evaluator.heap().make<ModInstance>();
    made->typeName = "dataclasses.field";
    for (const auto& [name, value] : call.keywords) {
        made->attributes[std::string(name)] = value;
    }
    return made;
}

constexpr std::array kTable = std::to_array<ModBuiltinEntry>({
    {"dataclasses.field", fieldOf},
    {"Module.register_buffer", registered},
    {"Module.register_parameter", registered},
    {"Module.to", itself},
    {"Module.cuda", itself},
    {"Module.cpu", itself},
    {"Module.eval", itself},
    {"Module.train", itself},
    {"Module.requires_grad_", itself},
});

} // namespace

std::span<const ModBuiltinEntry> moduleBuiltins() {
    return kTable;
}

} // namespace vitrine::engine
