// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/names.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/language/python/suggestion.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramType;

std::optional<PyValue> PyNames::lookUpGiven(std::string_view name) {
    const auto read = given_.find(name);
    if (read != given_.end()) {
        return PyValue(read->second);
    }
    const auto tensor = evaluation_.options.tensors.find(name);
    if (tensor != evaluation_.options.tensors.end()) {
        PyTensor* const made = tensorOfCapture(evaluation_.heap, tensor->second);
        made->name = std::string(name);
        made->gradient = made->isReal();
        given_.emplace(std::string(name), made);
        return PyValue(made);
    }
    const auto integer = evaluation_.options.integers.find(name);
    if (integer != evaluation_.options.integers.end()) {
        // Sizes are no numbers of the text: what shows them moves them.
        return evaluation_.options.sliders.contains(name) ? slid(name, PyValue::integer(integer->second))
                                                          : PyValue::integer(integer->second);
    }
    return std::nullopt;
}

PyValue PyNames::lookUp(std::string_view name) {
    for (PyNamespace* scope = evaluation_.scope; scope != nullptr; scope = scope->parent) {
        const auto found = scope->names.find(name);
        if (found == scope->names.end() || (scope->isClass && scope != evaluation_.scope)) {
            continue;
        }
        const bool global = scope->parent == nullptr;
        const PyPoison* const poisoned = found->second.as<PyPoison>();
        // What a file gives wins over a global that cannot be evaluated, and over a global tensor of its kind.
        const auto* const tensor = found->second.as<PyTensor>();
        if (global && (poisoned != nullptr || tensor != nullptr)) {
            const auto given = lookUpGiven(name);
            const auto* const other = given ? given->as<PyTensor>() : nullptr;
            if (given && (poisoned != nullptr || (other != nullptr && other->rank() == tensor->rank()))) {
                return *given;
            }
        }
        if (poisoned != nullptr) {
            throwPoison(*poisoned);
        }
        return found->second;
    }
    if (const auto given = lookUpGiven(name)) {
        return *given;
    }
    if (const BuiltinEntry* const entry = builtins_.find(name)) {
        auto* const made = evaluation_.heap.make<PyBuiltin>();
        made->entry = entry;
        return made;
    }
    if (name == "__name__") {
        return evaluation_.heap.string("vitrine");
    }
    if (name == "__file__") {
        return evaluation_.heap.string(evaluation_.text->file.name);
    }
    if (name == "torch" || name == "math" || name == "functools" || name == "itertools" || name == "operator") {
        auto* const made = evaluation_.heap.make<PyModuleValue>();
        made->path = std::string(name);
        return made;
    }
    if (outer_.find) {
        if (const auto found = outer_.find(name)) {
            return *found;
        }
    }
    unknownName(name);
}

void PyNames::unknownName(std::string_view name) {
    if (name == "exec" || name == "globals" || name == "locals") {
        evaluation_.anyName = true;
        fail(fmt::format("'{}' can change any name of the file and is not supported; assign the names themselves",
                         name));
    }
    std::vector<std::string_view> known;
    for (const PyNamespace* scope = evaluation_.scope; scope != nullptr; scope = scope->parent) {
        for (const auto& [other, value] : scope->names) {
            known.push_back(other);
        }
    }
    for (const auto& [other, value] : evaluation_.options.tensors) {
        known.push_back(other);
    }
    if (outer_.known) {
        const std::vector<std::string_view> more = outer_.known();
        known.insert(known.end(), more.begin(), more.end());
    }
    const std::string similar = suggestion(name, known);
    failNotKnown(fmt::format(
        "'{}' is not defined{}{}", name, similar,
        similar.empty() ? "; define it, or give it as a tensor of that name in a safetensors file (--tensors FILE)"
                        : " Else give it as a tensor of that name in a safetensors file (--tensors FILE)"));
}

PyValue PyNames::slid(std::string_view name, PyValue value) {
    const bool whole = value.kind() == PyValue::Kind::Int;
    if (!whole && value.kind() != PyValue::Kind::Float) {
        return value;
    }
    if (std::none_of(numbers_.begin(), numbers_.end(),
                     [name](const SlidableNumber& one) { return one.name == name; })) {
        numbers_.push_back({std::string(name), whole ? static_cast<double>(value.integer()) : value.number(), whole});
    }
    const auto slider = evaluation_.options.sliders.find(name);
    if (slider == evaluation_.options.sliders.end()) {
        return value;
    }
    PySlider*& made = sliders_[std::string(name)];
    if (made == nullptr) {
        constexpr double kLargest = 2147483647.0;
        if (whole && !(std::fabs(slider->second) <= kLargest)) {
            fail(fmt::format("'{}' is {}; whole numbers of sliders have 32 bits", name, slider->second));
        }
        made = evaluation_.heap.make<PySlider>();
        made->value = whole ? PyValue::integer(std::llround(slider->second)) : PyValue::real(slider->second);
        const DType dtype = whole ? DType::I32 : DType::F64;
        PyTensor* const tensor = scalarTensor(evaluation_.heap, dtype,
                                              whole ? kernels::intConstant(ProgramType::Int64, made->value.integer())
                                                    : kernels::floatConstant(slider->second));
        tensor->name = std::string(name);
        made->node = symbols_.tensorNode(*tensor);
    }
    return made;
}

void PyNames::bind(std::string_view name, PyValue value, PyNamespace& scope) {
    const auto elsewhere = scope.elsewhere.find(name);
    PyNamespace& target = elsewhere == scope.elsewhere.end() ? scope : *elsewhere->second;
    if (auto* const tensor = value.as<PyTensor>()) {
        if (tensor->name.empty()) {
            tensor->name = std::string(name);
        }
    }
    target.names[name] = target.parent == nullptr ? slid(name, value) : value;
}

} // namespace vitrine::engine
