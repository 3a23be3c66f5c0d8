// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/values.h"

#include <fmt/format.h>

#include "engine/language/builtins/builtins.h"

namespace vitrine::engine {

std::int64_t ModTensor::count() const {
    std::int64_t made = 1;
    for (const std::int64_t dim : dims) {
        made *= dim;
    }
    return made;
}

bool ModTensor::isReal() const {
    using kernels::DType;
    return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

std::string ModTensor::shapeText() const {
    return fmt::format("({}{})", fmt::join(dims, ", "), dims.size() == 1 ? "," : "");
}

ModScope* ModHeap::scope(ModScope* parent) {
    scopes_.push_back(std::make_unique<ModScope>());
    scopes_.back()->parent = parent;
    return scopes_.back().get();
}

void ModHeap::charge(std::int64_t elements) {
    // Each term is at most kMaxModConstants, so the sum cannot overflow.
    const bool fits = elements >= 0 && elements <= kMaxModConstants - elements_;
    elements_ += fits ? elements : 0;
    if (!fits) {
        throw base::BadInput(fmt::format("lists and tensors of more than {} elements in all", kMaxModConstants));
    }
}

ModString* ModHeap::string(std::string text) {
    charge(static_cast<std::int64_t>(text.size() / sizeof(ModValue)));
    auto* const made = make<ModString>();
    made->text = std::move(text);
    return made;
}

ModSequence* ModHeap::tuple(std::vector<ModValue> items) {
    charge(static_cast<std::int64_t>(items.size()));
    auto* const made = make<ModSequence>(ModKind::Tuple);
    made->items = std::move(items);
    return made;
}

ModSequence* ModHeap::list(std::vector<ModValue> items) {
    charge(static_cast<std::int64_t>(items.size()));
    auto* const made = make<ModSequence>(ModKind::List);
    made->items = std::move(items);
    return made;
}

ModValue ModHeap::ignored(std::string what) {
    auto* const made = make<ModIgnored>();
    made->what = std::move(what);
    return made;
}

std::string modTypeName(const ModValue& value) {
    switch (value.kind()) {
    case ModValue::Kind::None:
        return "None";
    case ModValue::Kind::Ellipsis:
        return "...";
    case ModValue::Kind::Bool:
        return "a bool";
    case ModValue::Kind::Int:
        return "an int";
    case ModValue::Kind::Float:
        return "a float";
    case ModValue::Kind::Symbol:
        return "a value that is known only for each element";
    case ModValue::Kind::Object:
        break;
    }
    switch (value.object()->kind) {
    case ModKind::String:
        return "a string";
    case ModKind::Tuple:
        return "a tuple";
    case ModKind::List:
        return "a list";
    case ModKind::Set:
        return "a set";
    case ModKind::Dict:
        return "a dict";
    case ModKind::Slice:
        return "a slice";
    case ModKind::Range:
        return "a range";
    case ModKind::Function:
    case ModKind::Builtin:
    case ModKind::Partial:
    case ModKind::Combination:
        return "a function";
    case ModKind::Dtype:
        return "a dtype";
    case ModKind::Tensor:
        return "a tensor of shape " + value.as<ModTensor>()->shapeText();
    case ModKind::Row:
        return "a row of a captured tensor";
    case ModKind::Array:
        return fmt::format("a tensor of shape ({}) of values known only for each element",
                           fmt::join(value.as<ModArray>()->dims, ", "));
    case ModKind::Slider:
        return "a number";
    case ModKind::Module:
        return "the module " + value.as<ModModuleObject>()->path;
    case ModKind::Class:
        return "a class";
    case ModKind::Instance:
        return "an object of class " + value.as<ModInstance>()->typeName;
    case ModKind::Super:
        return "super()";
    case ModKind::Poison:
        return "a value that could not be evaluated";
    case ModKind::Ignored:
        return value.as<ModIgnored>()->what;
    }
    return "a value";
}

namespace {

std::string itemsText(const std::vector<ModValue>& items) {
    std::string text;
    for (const ModValue& item : items) {
        text += (text.empty() ? "" : ", ") + modText(item);
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

std::string modText(const ModValue& value) {
    switch (value.kind()) {
    case ModValue::Kind::None:
        return "None";
    case ModValue::Kind::Ellipsis:
        return "Ellipsis";
    case ModValue::Kind::Bool:
        return value.integer() != 0 ? "True" : "False";
    case ModValue::Kind::Int:
        return fmt::format("{}", value.integer());
    case ModValue::Kind::Float:
        return realText(value.real());
    case ModValue::Kind::Symbol:
        return "<symbol>";
    case ModValue::Kind::Object:
        break;
    }
    if (const auto* const string = value.as<ModString>()) {
        return string->text.substr(0, 200);
    }
    if (const auto* const slider = value.as<ModSlider>()) {
        return modText(slider->value);
    }
    if (const auto* const function = value.as<ModFunction>()) {
        return std::string(function->code->name);
    }
    if (const auto* const builtin = value.as<ModBuiltin>()) {
        return std::string(builtin->entry->name);
    }
    if (const auto* const items = value.as<ModSequence>()) {
        // A container may hold itself; one level is enough for messages.
        for (const ModValue& item : items->items) {
            if (item.as<ModSequence>() != nullptr) {
                return items->kind == ModKind::List ? "[...]" : "(...)";
            }
        }
        return items->kind == ModKind::List ? "[" + itemsText(items->items) + "]" : "(" + itemsText(items->items) + ")";
    }
    return "<" + modTypeName(value) + ">";
}

} // namespace vitrine::engine
