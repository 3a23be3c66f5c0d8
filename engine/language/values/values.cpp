// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/values/values.h"

#include <fmt/format.h>

#include "engine/language/values/call.h"

namespace vitrine::engine {

std::int64_t PyTensor::count() const {
    std::int64_t made = 1;
    for (const std::int64_t dim : dims) {
        made *= dim;
    }
    return made;
}

bool PyTensor::isReal() const {
    using kernels::DType;
    return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

std::string PyTensor::shapeText() const {
    return fmt::format("({}{})", fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
}

PyNamespace* PyHeap::scope(PyNamespace* parent) {
    scopes_.push_back(std::make_unique<PyNamespace>());
    scopes_.back()->parent = parent;
    return scopes_.back().get();
}

void PyHeap::charge(std::int64_t elements) {
    // Each term is at most kMaxElements, so the sum cannot overflow.
    const bool fits = elements >= 0 && elements <= kMaxElements - elements_;
    elements_ += fits ? elements : 0;
    if (!fits) {
        throw base::BadInput(fmt::format("lists and tensors of more than {} elements in all", kMaxElements));
    }
}

PyString* PyHeap::string(std::string text) {
    charge(static_cast<std::int64_t>(text.size() / sizeof(PyValue)));
    auto* const made = make<PyString>();
    made->text = std::move(text);
    return made;
}

PySequence* PyHeap::tuple(std::vector<PyValue> items) {
    charge(static_cast<std::int64_t>(items.size()));
    auto* const made = make<PySequence>(PyKind::Tuple);
    made->items = std::move(items);
    return made;
}

PySequence* PyHeap::list(std::vector<PyValue> items) {
    charge(static_cast<std::int64_t>(items.size()));
    auto* const made = make<PySequence>(PyKind::List);
    made->items = std::move(items);
    return made;
}

PyValue PyHeap::ignored(std::string what) {
    auto* const made = make<PyIgnored>();
    made->what = std::move(what);
    return made;
}

void fail(const std::string& what) {
    throw base::BadInput(what);
}

void failNotKnown(const std::string& what) {
    throw NotKnownHere(what);
}

std::string pyTypeName(const PyValue& value) {
    switch (value.kind()) {
    case PyValue::Kind::None:
        return "None";
    case PyValue::Kind::Ellipsis:
        return "...";
    case PyValue::Kind::Bool:
        return "a bool";
    case PyValue::Kind::Int:
        return "an int";
    case PyValue::Kind::Float:
        return "a float";
    case PyValue::Kind::Symbol:
        return "a value that is known only for each element";
    case PyValue::Kind::Object:
        break;
    }
    switch (value.object()->kind) {
    case PyKind::String:
        return "a string";
    case PyKind::Tuple:
        return "a tuple";
    case PyKind::List:
        return "a list";
    case PyKind::Set:
        return "a set";
    case PyKind::Dict:
        return "a dict";
    case PyKind::Slice:
        return "a slice";
    case PyKind::Range:
        return "a range";
    case PyKind::Function:
    case PyKind::Builtin:
    case PyKind::Partial:
    case PyKind::Combination:
        return "a function";
    case PyKind::Dtype:
        return "a dtype";
    case PyKind::Tensor:
        return "a tensor of shape " + value.as<PyTensor>()->shapeText();
    case PyKind::Row:
        return "a row of a captured tensor";
    case PyKind::Array:
        return fmt::format("a tensor of shape ({}) of values known only for each element",
                           fmt::join(value.as<PyArray>()->dims, ", "));
    case PyKind::Slider:
        return "a number";
    case PyKind::Module:
        return "the module " + value.as<PyModuleValue>()->path;
    case PyKind::Class:
        return "a class";
    case PyKind::Instance:
        return "an object of class " + value.as<PyInstance>()->typeName;
    case PyKind::Super:
        return "super()";
    case PyKind::Poison:
        return "a value that could not be evaluated";
    case PyKind::Ignored:
        return value.as<PyIgnored>()->what;
    }
    return "a value";
}

namespace {

std::string itemsText(const std::vector<PyValue>& items) {
    std::string text;
    for (const PyValue& item : items) {
        text += (text.empty() ? "" : ", ") + pyText(item);
        if (text.size() > 200) {
            text.resize(200);
            return text += "...";
        }
    }
    return text;
}

std::string realText(double value) {
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

} // namespace

std::string pyText(const PyValue& value) {
    switch (value.kind()) {
    case PyValue::Kind::None:
        return "None";
    case PyValue::Kind::Ellipsis:
        return "Ellipsis";
    case PyValue::Kind::Bool:
        return value.integer() != 0 ? "True" : "False";
    case PyValue::Kind::Int:
        return fmt::format("{}", value.integer());
    case PyValue::Kind::Float:
        return realText(value.real());
    case PyValue::Kind::Symbol:
        return "<symbol>";
    case PyValue::Kind::Object:
        break;
    }
    if (const auto* const string = value.as<PyString>()) {
        return string->text.substr(0, 200);
    }
    if (const auto* const slider = value.as<PySlider>()) {
        return pyText(slider->value);
    }
    if (const auto* const function = value.as<PyFunction>()) {
        return std::string(function->code->name);
    }
    if (const auto* const builtin = value.as<PyBuiltin>()) {
        return std::string(builtin->entry->name);
    }
    if (const auto* const items = value.as<PySequence>()) {
        // A container may hold itself; one level is enough for messages.
        for (const PyValue& item : items->items) {
            if (item.as<PySequence>() != nullptr) {
                return items->kind == PyKind::List ? "[...]" : "(...)";
            }
        }
        return items->kind == PyKind::List ? "[" + itemsText(items->items) + "]" : "(" + itemsText(items->items) + ")";
    }
    return "<" + pyTypeName(value) + ">";
}

} // namespace vitrine::engine
