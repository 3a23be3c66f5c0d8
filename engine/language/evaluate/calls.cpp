// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/calls.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/language/python/suggestion.h"

namespace vitrine::engine {

using kernels::ProgramOp;

namespace {

// Before anything else: a misspelt keyword would look like a missing argument.
void checkKeywords(const PyFunctionCode& code, const PyCall& call, const std::string& name) {
    std::vector<std::string_view> known;
    for (const PyParameter& parameter : code.parameters) {
        if (parameter.kind == PyParameter::Kind::VarKeyword) {
            return;
        }
        known.push_back(parameter.name);
    }
    for (const auto& [keyword, value] : call.keywords) {
        if (std::find(known.begin(), known.end(), keyword) == known.end()) {
            fail(fmt::format("{} has no argument '{}'{}", name, keyword, suggestion(keyword, known)));
        }
    }
}

} // namespace

PyValue PyCalls::call(PyValue callee, PyCall& call) {
    const EvaluationDepth depth(services_.evaluation);
    if (auto* const function = callee.as<PyFunction>()) {
        return callFunction(*function, call);
    }
    if (auto* const builtin = callee.as<PyBuiltin>()) {
        if (!builtin->self.isNone()) {
            call.arguments.insert(call.arguments.begin(), builtin->self);
        }
        const PyValue made = builtin->entry->call(services_, call);
        return builtin->inPlace ? written(*builtin, made) : made;
    }
    if (auto* const partial = callee.as<PyPartial>()) {
        return callPartial(*partial, call);
    }
    if (auto* const combination = callee.as<PyCombination>()) {
        return callCombination(*combination, call);
    }
    if (auto* const type = callee.as<PyClass>()) {
        return services_.classes.instantiate(*type, call);
    }
    if (callee.as<PyIgnored>() != nullptr) {
        return callee;
    }
    if (callee.as<PyInstance>() != nullptr && services_.classes.isCallable(callee)) {
        return this->call(services_.attributes.attribute(callee, "__call__"), call);
    }
    if (const auto* const module = callee.as<PyModuleValue>();
        module != nullptr && module->path.rfind("torch.ops.", 0) == 0) {
        failNotKnown(
            fmt::format("the custom operator {} is not known; an operator that is called as a function of torch stands "
                        "for it (torch.ops.approx.tanh for torch.tanh), for others write the formula",
                        module->path));
    }
    if (const auto* const module = callee.as<PyModuleValue>()) {
        failNotKnown(fmt::format("'{}' is not known here; give the file that defines it too", module->path));
    }
    fail(fmt::format("{} cannot be called", pyTypeName(callee)));
}

PyValue PyCalls::callBuiltin(std::string_view name, PyCall& call) {
    return services_.builtins.find(name)->call(services_, call);
}

PyValue PyCalls::callPartial(const PyPartial& partial, PyCall& call) {
    PyCall all;
    all.arguments = partial.arguments;
    all.arguments.insert(all.arguments.end(), call.arguments.begin(), call.arguments.end());
    all.keywords = call.keywords;
    for (const auto& [name, value] : partial.keywords) {
        const auto same = [&name = name](const auto& given) { return given.first == name; };
        if (std::none_of(call.keywords.begin(), call.keywords.end(), same)) {
            all.keywords.emplace_back(name, value);
        }
    }
    return this->call(partial.callee, all);
}

PyValue PyCalls::written(const PyBuiltin& method, PyValue result) {
    auto* const target = method.self.as<PyTensor>();
    const std::string_view name = method.entry->name.substr(method.entry->name.rfind('.') + 1);
    if (target == nullptr || result.as<PyTensor>() == nullptr || (services_.evaluation.inProgram && !target->literal)) {
        fail(fmt::format("'{0}_' changes a value of the program in place; write x = x.{0}(...)", name));
    }
    assignTensor(*target, {result.as<PyTensor>(), {}});
    return method.self;
}

PyValue PyCalls::callCombination(PyCombination& masks, PyCall& call) {
    PyValue result = PyValue::boolean(masks.op == ProgramOp::And);
    for (const PyValue mask : masks.masks) {
        PyCall each = call;
        const PyValue value = this->call(mask, each);
        result = services_.elements.binary(masks.op, result, value);
    }
    return result;
}

PyValue PyCalls::callFunction(PyFunction& function, PyCall& call) {
    const PyFunctionCode& code = *function.code;
    if (code.isAsync || code.isGenerator) {
        fail(fmt::format("'{}' is {}, which programs cannot use", code.name, code.isAsync ? "async" : "a generator"));
    }
    if (calls_ >= kMaxNesting) {
        fail(fmt::format("more than {} nested calls", kMaxNesting));
    }
    PyNamespace* const scope = services_.heap.scope(function.closure);
    bindArguments(function, call, *scope);
    ++calls_;
    const PlaceGuard inside(services_.evaluation, function.text, scope);
    const PyFunction* const caller = std::exchange(services_.evaluation.running, &function);
    PyValue result;
    try {
        result = code.result ? expressions_.evaluate(*code.result) : statements_.run(code.body);
    } catch (...) {
        --calls_;
        services_.evaluation.running = caller;
        throw;
    }
    --calls_;
    services_.evaluation.running = caller;
    return result;
}

void PyCalls::bindArguments(PyFunction& function, PyCall& call, PyNamespace& scope) {
    using Kind = PyParameter::Kind;
    const PyFunctionCode& code = *function.code;
    const std::string name = code.name.empty() ? "this lambda" : fmt::format("'{}'", code.name);
    checkKeywords(code, call, name);
    std::vector<PyValue> positional = call.arguments;
    if (!function.self.isNone()) {
        positional.insert(positional.begin(), function.self);
    }
    std::vector<bool> used(call.keywords.size(), false);
    std::size_t next = 0;
    for (std::size_t i = 0; i < code.parameters.size(); ++i) {
        const PyParameter& parameter = code.parameters[i];
        if (parameter.kind == Kind::VarPositional) {
            scope.names[parameter.name] = services_.heap.tuple(
                {positional.begin() + static_cast<std::ptrdiff_t>(std::min(next, positional.size())),
                 positional.end()});
            next = positional.size();
            continue;
        }
        if (parameter.kind == Kind::VarKeyword) {
            auto* const rest = services_.heap.make<PyDict>();
            for (std::size_t k = 0; k < call.keywords.size(); ++k) {
                if (!used[k]) {
                    used[k] = true;
                    rest->entries.emplace_back(services_.heap.string(std::string(call.keywords[k].first)),
                                               call.keywords[k].second);
                }
            }
            scope.names[parameter.name] = rest;
            continue;
        }
        std::optional<PyValue> value;
        if (parameter.kind != Kind::KeywordOnly && next < positional.size()) {
            value = positional[next++];
        }
        for (std::size_t k = 0; k < call.keywords.size() && parameter.kind != Kind::PositionalOnly; ++k) {
            if (call.keywords[k].first == parameter.name) {
                if (value) {
                    fail(fmt::format("{} gets its argument '{}' twice", name, parameter.name));
                }
                value = call.keywords[k].second;
                used[k] = true;
            }
        }
        if (!value && !parameter.value) {
            fail(fmt::format("{} needs its argument '{}'", name, parameter.name));
        }
        // Sliders move the arguments of factories; inside a program a parameter is what it was called with.
        const PyValue bound = value ? *value : function.defaults[i];
        names_.bind(parameter.name, services_.evaluation.inProgram ? bound : names_.slid(parameter.name, bound), scope);
    }
    if (next < positional.size()) {
        fail(fmt::format("{} takes {} arguments, {} were given", name, next, positional.size()));
    }
}

} // namespace vitrine::engine
