// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values of a template: Python's, as far as Jinja shows them. Objects live in one heap for one rendering, so that
// cycles need no care. The heap bounds what a template can make.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/chat/jinja/text.h"

namespace vitrine::engine::jinja {

enum class Kind : std::uint8_t {
    Undefined,
    None,
    Bool,
    Int,
    Float,
    String,
    List,
    Tuple,
    View,     ///< what items(), keys() and values() of a dict give: has a length and no indices
    Iterator, ///< what filters such as map give: always true, read once
    Dict,
    Namespace,
    Loop,
    Callable,
};

struct Object {
    Object() = default;
    virtual ~Object() = default;
    Object(const Object&) = delete; // values point at it
    Object& operator=(const Object&) = delete;
};

struct Dict;
struct Sequence;
struct StringObject;
struct LoopState;
struct Callable;

class Value {
public:
    Value() = default; ///< undefined
    static Value none() { return {Kind::None, std::int64_t{0}}; }
    static Value boolean(bool value) { return {Kind::Bool, std::int64_t{value}}; }
    static Value integer(std::int64_t value) { return {Kind::Int, value}; }
    static Value real(double value);
    Value(Kind kind, Object* object) : kind_(kind), object_(object) {}

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool isNumber() const { return kind_ == Kind::Bool || kind_ == Kind::Int || kind_ == Kind::Float; }
    bool isWhole() const { return kind_ == Kind::Bool || kind_ == Kind::Int; }
    bool isSequence() const { return kind_ >= Kind::List && kind_ <= Kind::Iterator; }
    std::int64_t integer() const { return bits_; } ///< of Bool and Int
    double number() const;                         ///< of Bool, Int and Float

    /// Each REQUIRES the kind.
    const Text& text() const;
    const std::string& bytes() const { return text().bytes(); }
    Sequence& sequence() const;
    Dict& dict() const; ///< also of a namespace
    LoopState& loop() const;
    Callable& callable() const;
    /// What an undefined value is called in messages.
    std::string undefinedName() const;
    const Object* object() const { return object_; }

private:
    Value(Kind kind, std::int64_t bits) : kind_(kind), bits_(bits) {}

    Kind kind_ = Kind::Undefined;
    std::int64_t bits_ = 0;
    Object* object_ = nullptr;
};

struct StringObject : Object {
    Text text;
};
struct Sequence : Object {
    std::vector<Value> items;
    bool read = false; ///< an iterator that was read to its end
};
struct Dict : Object {
    std::vector<std::pair<Value, Value>> entries; ///< in the order in which they were put in
    Value* find(const Value& key);
    Value* find(std::string_view key);
    void set(const Value& key, const Value& value);
};

class TemplateRun;
struct Call;
struct Stmt;
struct Scope;

/// The variable "loop" of a for statement.
struct LoopState : Object {
    const std::vector<Value>* items = nullptr;
    std::size_t index = 0;
    std::int64_t depth = 0;
    const Stmt* statement = nullptr; ///< of a recursive loop
    Scope* outer = nullptr;
    std::vector<Value> lastChanged; ///< arguments of the last call of changed()
    bool everChanged = false;
};

/// A function: built in (perhaps a method of `self`), or a macro.
struct Callable : Object {
    std::string name;
    Value (*builtin)(TemplateRun& run, Call& call) = nullptr;
    Value self;
    const Stmt* macro = nullptr;
    Scope* closure = nullptr;
    Value state; ///< of cyclers and joiners
};

/// Python's equality: 1 == 1.0 == True, sequences by element.
bool equals(const Value& a, const Value& b);
bool isTrue(const Value& value);

/// Names of a template, a macro's call or an iteration.
struct Scope : Object {
    Scope* parent = nullptr;
    std::vector<std::pair<std::string_view, Value>> names;
    Value* find(std::string_view name);
    void set(std::string_view name, const Value& value);
};

/// Owns the objects of a rendering. Throws BadInput where a template makes too much.
class Heap {
public:
    template <class T> T* make() {
        charge(sizeof(T) + sizeof(void*));
        auto owned = std::make_unique<T>();
        T* out = owned.get();
        objects_.push_back(std::move(owned));
        return out;
    }
    Value string(Text text);
    Value string(std::string bytes) { return string(Text(std::move(bytes))); }
    Value list(std::vector<Value> items, Kind kind = Kind::List);
    Value dict();
    Value undefined(std::string name);
    /// Counts bytes that are about to be taken.
    void charge(std::size_t bytes);

private:
    std::vector<std::unique_ptr<Object>> objects_;
    std::size_t bytes_ = 0;
};

} // namespace vitrine::engine::jinja
