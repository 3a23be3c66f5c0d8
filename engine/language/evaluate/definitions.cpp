// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/definitions.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>

#include "engine/language/evaluate/statements.h"

namespace vitrine::engine {

namespace {

std::string_view lastName(std::string_view dotted) {
    const std::size_t dot = dotted.rfind('.');
    return dot == std::string_view::npos ? dotted : dotted.substr(dot + 1);
}

} // namespace

PyFunction* PyDefinitions::makeFunction(const PyFunctionCode& code) {
    auto* const made = services_.heap.make<PyFunction>();
    made->code = &code;
    made->text = services_.evaluation.text;
    made->closure = services_.evaluation.scope;
    for (const PyParameter& parameter : code.parameters) {
        made->defaults.push_back(parameter.value ? expressions_.evaluateUnneeded(*parameter.value) : PyValue());
    }
    return made;
}

// Whether a decorator's name begins with what Python, PyTorch or a test library defines, not with a text's own name.
bool PyDefinitions::isOfKnownModule(std::string_view root) {
    static constexpr std::array<std::string_view, 9> kKnown = {
        "torch", "functools", "typing", "typing_extensions", "abc", "dataclasses", "triton", "pytest", "warnings"};
    for (const PyNamespace* scope = services_.evaluation.scope; scope != nullptr; scope = scope->parent) {
        const auto found = scope->names.find(root);
        if (found == scope->names.end()) {
            continue;
        }
        if (const auto* const module = found->second.as<PyModuleValue>()) {
            const std::string_view path = std::string_view(module->path).substr(0, module->path.find('.'));
            return std::find(kKnown.begin(), kKnown.end(), path) != kKnown.end();
        }
        return found->second.as<PyIgnored>() != nullptr || found->second.as<PyBuiltin>() != nullptr;
    }
    return true;
}

// Compilers, caches and wrappers do not change what a function means.
PyValue PyDefinitions::decorate(PyValue value, const PyExpr& decorator) {
    const PyExpr& name = decorator.kind == PyExprKind::Call ? *decorator.items[0] : decorator;
    const std::string_view written = std::string_view(services_.evaluation.text->file.text)
                                         .substr(name.range.begin, name.range.end - name.range.begin);
    auto* const function = value.as<PyFunction>();
    if (function != nullptr && written == "staticmethod") {
        function->isStatic = true;
        return value;
    }
    if (function != nullptr && (written == "classmethod" || written == "property")) {
        (written == "property" ? function->isProperty : function->isClassMethod) = true;
        return value;
    }
    const std::string_view root = written.substr(0, written.find('.'));
    if (function != nullptr && written == fmt::format("{}.setter", root)) {
        const auto property = services_.evaluation.scope->names.find(root);
        auto* const getter =
            property == services_.evaluation.scope->names.end() ? nullptr : property->second.as<PyFunction>();
        if (getter != nullptr && getter->isProperty) {
            getter->setter = function;
            return getter;
        }
    }
    const std::string_view last =
        written.substr(written.rfind('.') == std::string_view::npos ? 0 : written.rfind('.') + 1);
    static constexpr std::array<std::string_view, 18> kTransparent = {
        "lru_cache", "cache",       "wraps",          "compile",  "no_grad", "inference_mode",
        "disable",   "custom_op",   "allow_in_graph", "script",   "jit",     "register_fake",
        "skipif",    "parametrize", "overload",       "override", "final",   "dataclass"};
    if (isOfKnownModule(root) && function != nullptr && last == "cached_property") {
        function->isProperty = true;
        return value;
    }
    if (isOfKnownModule(root) && std::find(kTransparent.begin(), kTransparent.end(), last) != kTransparent.end()) {
        if (auto* const type = value.as<PyClass>()) {
            type->isData = type->isData || last == "dataclass";
        }
        return value;
    }
    const PyValue wrapper = expressions_.evaluate(decorator);
    if (wrapper.as<PyIgnored>() != nullptr) {
        return value;
    }
    try {
        return services_.caller.call(wrapper, {value});
    } catch (const PyError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw services_.evaluation.located(error, decorator.range);
    }
}

void PyDefinitions::define(const PyStmt& statement) {
    const PyFunctionCode& code = *statement.function;
    PyValue made = makeFunction(code);
    for (std::size_t i = code.decorators.size(); i-- > 0;) {
        made = decorate(made, *code.decorators[i]);
    }
    names_.bind(code.name, made, *services_.evaluation.scope);
}

// The class with its parents and fields, before its body is executed.
PyClass* PyDefinitions::classHead(const PyStmt& statement) {
    auto* const made = services_.heap.make<PyClass>();
    made->name = statement.name;
    made->scope = services_.heap.scope(services_.evaluation.scope);
    made->scope->isClass = true;
    for (const PyExprPtr& base : statement.exprs) {
        const std::string_view last = lastName(std::string_view(services_.evaluation.text->file.text)
                                                   .substr(base->range.begin, base->range.end - base->range.begin));
        made->isAutogradFunction = made->isAutogradFunction || last == "Function";
        made->isData = made->isData || last == "NamedTuple";
        made->isModule = made->isModule || last == "Module";
        if (base->kind == PyExprKind::Name) {
            for (PyNamespace* scope = services_.evaluation.scope; scope != nullptr; scope = scope->parent) {
                const auto found = scope->names.find(base->name);
                if (found != scope->names.end()) {
                    made->bases.push_back(found->second);
                    const auto* const parent = found->second.as<PyClass>();
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
    return made;
}

void PyDefinitions::defineClass(const PyStmt& statement) {
    PyClass* const made = classHead(statement);
    {
        const PlaceGuard inside(services_.evaluation, services_.evaluation.text, made->scope);
        statements_.execute(statement.blocks[0]);
        numberMembers(statement.blocks[0]);
    }
    for (const auto& [name, member] : made->scope->names) {
        auto* const function = member.as<PyFunction>();
        if (function != nullptr && function->closure == made->scope) {
            function->owner = made;
        }
    }
    PyValue value = made;
    for (std::size_t i = statement.decorators.size(); i-- > 0;) {
        value = decorate(value, *statement.decorators[i]);
    }
    names_.bind(statement.name, value, *services_.evaluation.scope);
}

// enum.auto() is one more than the member before.
void PyDefinitions::numberMembers(const PyBlock& block) {
    std::int64_t last = 0;
    for (const std::unique_ptr<PyStmt>& member : block) {
        if (member->kind != PyStmtKind::Assign || member->exprs[0]->kind != PyExprKind::Name) {
            continue;
        }
        const auto found = services_.evaluation.scope->names.find(member->exprs[0]->name);
        if (found == services_.evaluation.scope->names.end()) {
            continue;
        }
        const auto* const ignored = found->second.as<PyIgnored>();
        if (ignored != nullptr && ignored->what == "enum.auto") {
            found->second = PyValue::integer(last < std::numeric_limits<std::int64_t>::max() ? last + 1 : last);
        }
        last = found->second.kind() == PyValue::Kind::Int ? found->second.integer() : last;
    }
}

} // namespace vitrine::engine
