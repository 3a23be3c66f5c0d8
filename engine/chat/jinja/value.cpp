// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/value.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::engine::jinja {

namespace {

constexpr std::size_t kMostHeapBytes = std::size_t{512} << 20;
constexpr int kDeepestComparison = 200;

bool equalItems(const std::vector<Value>& a, const std::vector<Value>& b, int depth);

bool equalAt(const Value& a, const Value& b, int depth) {
    if (depth > kDeepestComparison) {
        throw base::BadInput("values are nested too deep to be compared");
    }
    if (a.isNumber() && b.isNumber()) {
        return a.isWhole() && b.isWhole() ? a.integer() == b.integer() : a.number() == b.number();
    }
    if (a.kind() != b.kind()) {
        return false;
    }
    switch (a.kind()) {
    case Kind::Undefined:
    case Kind::None:
        return true;
    case Kind::String:
        return a.bytes() == b.bytes();
    case Kind::List:
    case Kind::Tuple:
        return equalItems(a.sequence().items, b.sequence().items, depth + 1);
    case Kind::Dict: {
        Dict& other = b.dict();
        return a.dict().entries.size() == other.entries.size() &&
               std::ranges::all_of(a.dict().entries, [&](const auto& entry) {
                   const Value* found = other.find(entry.first);
                   return found != nullptr && equalAt(entry.second, *found, depth + 1);
               });
    }
    default:
        return a.object() == b.object();
    }
}

bool equalItems(const std::vector<Value>& a, const std::vector<Value>& b, int depth) {
    return std::ranges::equal(a, b, [&](const Value& x, const Value& y) { return equalAt(x, y, depth); });
}

} // namespace

Value Value::real(double value) {
    return {Kind::Float, std::bit_cast<std::int64_t>(value)};
}

double Value::number() const {
    return kind_ == Kind::Float ? std::bit_cast<double>(bits_) : static_cast<double>(bits_);
}

const Text& Value::text() const {
    return static_cast<const StringObject*>(object_)->text;
}

Sequence& Value::sequence() const {
    return *static_cast<Sequence*>(object_);
}

Dict& Value::dict() const {
    return *static_cast<Dict*>(object_);
}

LoopState& Value::loop() const {
    return *static_cast<LoopState*>(object_);
}

Callable& Value::callable() const {
    return *static_cast<Callable*>(object_);
}

std::string Value::undefinedName() const {
    return object_ == nullptr ? "the value" : static_cast<const StringObject*>(object_)->text.bytes();
}

Value* Dict::find(const Value& key) {
    const auto found = std::ranges::find_if(entries, [&](const auto& entry) { return equals(entry.first, key); });
    return found == entries.end() ? nullptr : &found->second;
}

Value* Dict::find(std::string_view key) {
    const auto found = std::ranges::find_if(
        entries, [&](const auto& entry) { return entry.first.is(Kind::String) && entry.first.bytes() == key; });
    return found == entries.end() ? nullptr : &found->second;
}

void Dict::set(const Value& key, const Value& value) {
    if (Value* found = find(key)) {
        *found = value;
    } else {
        entries.emplace_back(key, value);
    }
}

bool equals(const Value& a, const Value& b) {
    return equalAt(a, b, 0);
}

bool isTrue(const Value& value) {
    switch (value.kind()) {
    case Kind::Undefined:
    case Kind::None:
        return false;
    case Kind::Bool:
    case Kind::Int:
        return value.integer() != 0;
    case Kind::Float:
        return value.number() != 0;
    case Kind::String:
        return !value.text().empty();
    case Kind::List:
    case Kind::Tuple:
    case Kind::View:
        return !value.sequence().items.empty();
    case Kind::Dict:
        return !value.dict().entries.empty();
    default:
        return true;
    }
}

Value* Scope::find(std::string_view name) {
    for (Scope* scope = this; scope != nullptr; scope = scope->parent) {
        for (auto& [key, value] : scope->names) {
            if (key == name) {
                return &value;
            }
        }
    }
    return nullptr;
}

void Scope::set(std::string_view name, const Value& value) {
    for (auto& [key, held] : names) {
        if (key == name) {
            held = value;
            return;
        }
    }
    names.emplace_back(name, value);
}

Value Heap::string(Text text) {
    charge(text.size() + text.origins().size() * sizeof(Origin));
    auto* object = make<StringObject>();
    object->text = std::move(text);
    return {Kind::String, object};
}

Value Heap::list(std::vector<Value> items, Kind kind) {
    charge(items.size() * sizeof(Value));
    auto* object = make<Sequence>();
    object->items = std::move(items);
    return {kind, object};
}

Value Heap::dict() {
    return {Kind::Dict, make<Dict>()};
}

Value Heap::undefined(std::string name) {
    auto* object = make<StringObject>();
    object->text = Text(std::move(name));
    return {Kind::Undefined, object};
}

void Heap::charge(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes > kMostHeapBytes || bytes_ > kMostHeapBytes) {
        throw base::BadInput(fmt::format("the template makes more than {} MiB of values", kMostHeapBytes >> 20U));
    }
}

} // namespace vitrine::engine::jinja
