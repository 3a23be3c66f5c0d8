// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/attributes.h"

#include <fmt/format.h>

namespace vitrine::engine {

namespace {

bool isFunction(PyValue value) {
    return value.as<PyFunction>() != nullptr || value.as<PyPartial>() != nullptr || value.as<PyBuiltin>() != nullptr ||
           value.as<PyCombination>() != nullptr;
}

} // namespace

std::optional<PyValue> PyAttributes::find(PyValue object, std::string_view name) {
    if (const auto* const module = object.as<PyModuleValue>()) {
        return modules_.find(*module, name);
    }
    if (object.as<PyIgnored>() != nullptr) {
        return object;
    }
    if (object.as<PyInstance>() != nullptr) {
        return memberOfInstance(object, name);
    }
    if (auto* const type = object.as<PyClass>()) {
        return memberOfClass(*type, name);
    }
    if (const auto* const parents = object.as<PySuper>()) {
        return classes_.memberOfParents(*parents, name);
    }
    if (name == "value" && (object.isNumber() || object.as<PyString>() != nullptr)) {
        return object; // members of an Enum are their values
    }
    if (object.isNumber()) {
        const bool real = object.kind() == PyValue::Kind::Float;
        if (const BuiltinEntry* const entry = builtins_.find((real ? "float." : "int.") + std::string(name))) {
            return makeBuiltin(evaluation_.heap, entry, object);
        }
    }
    if (isTensorLike(object)) {
        return tensorMember(object, name);
    }
    if (object.as<PySlider>() != nullptr || object.isNumber()) {
        // Numbers where tensors are meant: q_idx may be one in a test of a program.
        return tensorMember(object, name);
    }
    if (const auto* const dtype = object.as<PyDtype>()) {
        if (name == "is_floating_point") {
            return PyValue::boolean(isRealDtype(dtype->dtype));
        }
        return name == "itemsize" ? std::optional(PyValue::integer(kernels::bitsOf(dtype->dtype) / 8)) : std::nullopt;
    }
    if (isFunction(object)) {
        return memberOfFunction(object, name);
    }
    if (const auto* const pair = object.as<PySequence>(); pair != nullptr && pair->kind == PyKind::Tuple &&
                                                          pair->items.size() == 2 &&
                                                          (name == "values" || name == "indices")) {
        return pair->items[name == "values" ? 0 : 1]; // of sort(), topk(), max(dim)
    }
    const std::string_view prefix = object.as<PyString>() != nullptr ? "str."
                                    : object.as<PyDict>() != nullptr ? "dict."
                                                                     : "list.";
    const BuiltinEntry* const entry =
        object.object() == nullptr ? nullptr : builtins_.find(std::string(prefix) + std::string(name));
    return entry != nullptr ? std::optional(makeBuiltin(evaluation_.heap, entry, object)) : std::nullopt;
}

std::optional<PyValue> PyAttributes::memberOfClass(PyClass& type, std::string_view name) {
    if (type.isAutogradFunction && name == "apply") {
        return classes_.find(type, "forward");
    }
    if (name == "__name__") {
        return PyValue(evaluation_.heap.string(std::string(type.name)));
    }
    const auto found = classes_.find(type, name);
    const auto* const function = found ? found->as<PyFunction>() : nullptr;
    return function != nullptr && function->isClassMethod ? classes_.boundMember(*found, &type) : found;
}

std::optional<PyValue> PyAttributes::memberOfFunction(PyValue object, std::string_view name) {
    if (const auto* const function = object.as<PyFunction>()) {
        if (name == "__name__") {
            return PyValue(evaluation_.heap.string(std::string(function->code->name)));
        }
        return evaluation_.heap.ignored(std::string(name)); // register_fake, __doc__, cache_clear
    }
    if (const auto* const partial = object.as<PyPartial>()) {
        return name == "func" ? std::optional(partial->callee) : std::nullopt;
    }
    if (const auto* const builtin = object.as<PyBuiltin>(); builtin != nullptr && name != "__name__") {
        const BuiltinEntry* const entry = builtins_.find(fmt::format("{}.{}", builtin->entry->name, name));
        return entry != nullptr ? std::optional(makeBuiltin(evaluation_.heap, entry)) : std::nullopt;
    }
    return name == "__name__" ? std::optional<PyValue>(evaluation_.heap.string(pyText(object))) : std::nullopt;
}

std::optional<PyValue> PyAttributes::memberOfInstance(PyValue object, std::string_view name) {
    auto* const instance = object.as<PyInstance>();
    const auto own = instance->attributes.find(name);
    if (own != instance->attributes.end()) {
        if (const auto* const poisoned = own->second.as<PyPoison>()) {
            throwPoison(*poisoned);
        }
        return own->second;
    }
    if (instance->type == nullptr) {
        return std::nullopt;
    }
    if (const auto found = classes_.find(*instance->type, name)) {
        return classes_.boundMember(*found, object);
    }
    const BuiltinEntry* const entry =
        instance->type->isModule ? builtins_.find("Module." + std::string(name)) : nullptr;
    return entry != nullptr ? std::optional(makeBuiltin(evaluation_.heap, entry, object)) : std::nullopt;
}

std::optional<PyValue> PyAttributes::tensorMember(PyValue object, std::string_view name) {
    if (name == "shape" || name == "ndim") {
        const TensorDims dims = dimsOf(object);
        if (name == "ndim") {
            return PyValue::integer(static_cast<std::int64_t>(dims.size()));
        }
        std::vector<PyValue> items;
        for (const std::int64_t dim : dims) {
            items.push_back(PyValue::integer(dim));
        }
        return PyValue(evaluation_.heap.tuple(std::move(items)));
    }
    if (name == "dtype") {
        auto* const made = evaluation_.heap.make<PyDtype>();
        made->dtype = symbols_.dtypeOf(object);
        return PyValue(made);
    }
    if (name == "device" || name == "layout" || name == "grad") {
        return evaluation_.heap.ignored("device");
    }
    if (name == "is_cuda" || name == "requires_grad") {
        const auto* const tensor = object.as<PyTensor>();
        return PyValue::boolean(name == "requires_grad" && tensor != nullptr && tensor->gradient);
    }
    if (name == "T" || name == "mT") {
        return caller_.callBuiltin("Tensor.t", {object});
    }
    const BuiltinEntry* entry = builtins_.find("Tensor." + std::string(name));
    if (entry == nullptr) {
        entry = builtins_.findMethod(name);
    }
    const bool inPlace = entry == nullptr && name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_';
    if (inPlace) {
        entry = builtins_.findMethod(name.substr(0, name.size() - 1));
    }
    if (entry == nullptr) {
        return std::nullopt;
    }
    const PyValue made = makeBuiltin(evaluation_.heap, entry, object);
    made.as<PyBuiltin>()->inPlace = inPlace;
    return made;
}

PyValue PyAttributes::attribute(PyValue object, std::string_view name) {
    if (const auto found = find(object, name)) {
        if (const auto* const poisoned = found->as<PyPoison>()) {
            throwPoison(*poisoned);
        }
        return *found;
    }
    if (const auto* const module = object.as<PyModuleValue>()) {
        return modules_.unknownMember(*module, name);
    }
    const bool tensor = isTensorLike(object);
    failNotKnown(fmt::format("{} has no attribute '{}' here{}", pyTypeName(object), name,
                             tensor ? builtins_.suggestion("torch.", name) : std::string()));
}

} // namespace vitrine::engine
