// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

Value loopAttribute(TemplateRun& run, const Value& value, std::string_view name) {
    const LoopState& loop = value.loop();
    const auto size = static_cast<std::int64_t>(loop.items->size());
    const auto index = static_cast<std::int64_t>(loop.index);
    if (name == "index" || name == "index0") {
        return Value::integer(index + (name == "index" ? 1 : 0));
    }
    if (name == "revindex" || name == "revindex0") {
        return Value::integer(size - index - (name == "revindex" ? 0 : 1));
    }
    if (name == "first" || name == "last") {
        return Value::boolean(name == "first" ? index == 0 : index + 1 == size);
    }
    if (name == "length") {
        return Value::integer(size);
    }
    if (name == "depth" || name == "depth0") {
        return Value::integer(loop.depth + (name == "depth" ? 1 : 0));
    }
    if (name == "previtem" || name == "nextitem") {
        const std::int64_t at = name == "previtem" ? index - 1 : index + 1;
        return at >= 0 && at < size
                   ? (*loop.items)[static_cast<std::size_t>(at)]
                   : run.heap().undefined(at < 0 ? "there is no previous item, it" : "there is no next item, it");
    }
    if (BuiltinFunction method = containerMethod(Kind::Loop, name)) {
        return run.builtin(std::string(name), method, value);
    }
    return run.heap().undefined(fmt::format("loop.{}", name));
}

} // namespace

std::optional<Value> Call::optional(std::size_t index, std::string_view name) {
    if (index < items.size()) {
        taken = std::max(taken, index + 1);
        return items[index];
    }
    return keyword(name);
}

std::optional<Value> Call::keyword(std::string_view name) {
    const auto found = std::ranges::find_if(keywords, [&](const auto& each) { return each.first == name; });
    if (found == keywords.end()) {
        return std::nullopt;
    }
    const Value out = found->second;
    keywords.erase(found);
    return out;
}

Value TemplateRun::need(Call& call, std::size_t index, std::string_view name) {
    const std::optional<Value> value = call.optional(index, name);
    if (!value) {
        fail(fmt::format("the argument {} is missing", name));
    }
    return *value;
}

void TemplateRun::finish(const Call& call, std::string_view name) {
    if (call.items.size() > call.taken || !call.keywords.empty()) {
        fail(fmt::format("{} takes no argument {}", name,
                         call.keywords.empty() ? std::to_string(call.taken + 1) : call.keywords.front().first));
    }
}

const Text& TemplateRun::needText(const Value& value) {
    if (!value.is(Kind::String)) {
        fail(fmt::format("needs a string, not a value of type {}", typeName(value)));
    }
    return value.text();
}

std::int64_t TemplateRun::needInteger(const Value& value) {
    if (!value.isWhole()) {
        fail(fmt::format("needs a whole number, not a value of type {}", typeName(value)));
    }
    return value.integer();
}

std::int64_t TemplateRun::wholeOf(double value) const {
    constexpr double kBound = 9223372036854775808.0;
    if (!(value > -kBound && value < kBound)) {
        fail("the result is a whole number of more than 64 bits");
    }
    return static_cast<std::int64_t>(value);
}

Value TemplateRun::builtin(std::string name, Value (*function)(TemplateRun&, Call&), const Value& self) {
    auto* out = heap_.make<Callable>();
    out->name = std::move(name);
    out->builtin = function;
    out->self = self;
    return {Kind::Callable, out};
}

Value TemplateRun::evaluate(const Expr& expr, Scope& scope) {
    step();
    const Depth depth(*this);
    place_ = expr.place;
    switch (expr.kind) {
    case ExprKind::Name:
        return evaluateName(expr, scope);
    case ExprKind::True:
    case ExprKind::False:
        return Value::boolean(expr.kind == ExprKind::True);
    case ExprKind::None:
        return Value::none();
    case ExprKind::Integer:
        return Value::integer(expr.integer);
    case ExprKind::Real:
        return Value::real(expr.real);
    case ExprKind::String:
        return heap_.string(expr.text);
    case ExprKind::List:
    case ExprKind::Tuple:
    case ExprKind::Dict:
        return evaluateContainer(expr, scope);
    case ExprKind::Attribute: {
        const Value left = evaluate(*expr.left, scope);
        place_ = expr.place;
        return attribute(left, expr.text);
    }
    case ExprKind::Item:
        return evaluateItem(expr, scope);
    case ExprKind::Slice:
        fail("a slice stands outside of brackets");
    case ExprKind::Call: {
        const Value callee = evaluate(*expr.left, scope);
        Call made = arguments(expr, scope);
        place_ = expr.place;
        return call(callee, made);
    }
    case ExprKind::Filter: {
        const Value left = expr.left != nullptr ? evaluate(*expr.left, scope) : *scope.find(" block");
        Call made = arguments(expr, scope);
        made.self = left;
        place_ = expr.place;
        return filter(expr.text, made);
    }
    case ExprKind::Test: {
        const Value left = evaluate(*expr.left, scope);
        Call made = arguments(expr, scope);
        made.self = left;
        place_ = expr.place;
        return Value::boolean(test(expr.text, made));
    }
    default:
        return evaluateOperation(expr, scope);
    }
}

Value TemplateRun::evaluateOperation(const Expr& expr, Scope& scope) {
    switch (expr.kind) {
    case ExprKind::Condition:
        if (isTrue(evaluate(*expr.right, scope))) {
            return evaluate(*expr.left, scope);
        }
        return expr.items[0] != nullptr ? evaluate(*expr.items[0], scope)
                                        : heap_.undefined("the value of an if without else");
    case ExprKind::And: {
        const Value left = evaluate(*expr.left, scope);
        return isTrue(left) ? evaluate(*expr.right, scope) : left;
    }
    case ExprKind::Or: {
        const Value left = evaluate(*expr.left, scope);
        return isTrue(left) ? left : evaluate(*expr.right, scope);
    }
    case ExprKind::Not:
        return Value::boolean(!isTrue(evaluate(*expr.left, scope)));
    case ExprKind::Negative:
    case ExprKind::Positive:
        return evaluateSign(expr, scope);
    case ExprKind::Arithmetic: {
        const Value left = evaluate(*expr.left, scope);
        const Value right = evaluate(*expr.right, scope);
        place_ = expr.place;
        return arithmetic(expr.text, left, right);
    }
    case ExprKind::Concat:
        return evaluateConcat(expr, scope);
    case ExprKind::Compare:
        return evaluateCompare(expr, scope);
    default:
        return {};
    }
}

Value TemplateRun::evaluateName(const Expr& expr, Scope& scope) {
    const Value* found = scope.find(expr.text);
    return found != nullptr ? *found : heap_.undefined("'" + expr.text + "'");
}

Value TemplateRun::evaluateContainer(const Expr& expr, Scope& scope) {
    if (expr.kind == ExprKind::Dict) {
        const Value out = heap_.dict();
        for (std::size_t i = 0; i < expr.items.size(); i += 2) {
            const Value key = evaluate(*expr.items[i], scope);
            step(out.dict().entries.size() / 8);
            out.dict().set(key, evaluate(*expr.items[i + 1], scope));
        }
        return out;
    }
    std::vector<Value> items;
    items.reserve(expr.items.size());
    for (const Expr* item : expr.items) {
        items.push_back(evaluate(*item, scope));
    }
    return heap_.list(std::move(items), expr.kind == ExprKind::List ? Kind::List : Kind::Tuple);
}

Value TemplateRun::evaluateSign(const Expr& expr, Scope& scope) {
    const Value value = evaluate(*expr.left, scope);
    if (!value.isNumber()) {
        fail(fmt::format("a sign needs a number, not a value of type {}", typeName(value)));
    }
    if (expr.kind == ExprKind::Positive) {
        return value.is(Kind::Bool) ? Value::integer(value.integer()) : value;
    }
    return value.is(Kind::Float) ? Value::real(-value.number()) : arithmetic("-", Value::integer(0), value);
}

Value TemplateRun::evaluateConcat(const Expr& expr, Scope& scope) {
    Text out;
    for (const Expr* item : expr.items) {
        out.append(printed(evaluate(*item, scope)));
    }
    return heap_.string(std::move(out));
}

Call TemplateRun::arguments(const Expr& expr, Scope& scope) {
    Call out;
    for (const Expr* item : expr.items) {
        out.items.push_back(evaluate(*item, scope));
    }
    if (expr.moreItems != nullptr) {
        for (const Value& item : iterate(evaluate(*expr.moreItems, scope))) {
            out.items.push_back(item);
        }
    }
    for (const auto& [name, value] : expr.keywords) {
        out.keywords.emplace_back(name, evaluate(*value, scope));
    }
    if (expr.moreKeywords != nullptr) {
        const Value more = evaluate(*expr.moreKeywords, scope);
        if (!more.is(Kind::Dict)) {
            fail("** needs a dict");
        }
        for (const auto& [name, value] : more.dict().entries) {
            out.keywords.emplace_back(needText(name).bytes(), value);
        }
    }
    return out;
}

Value TemplateRun::evaluateCompare(const Expr& expr, Scope& scope) {
    Value left = evaluate(*expr.left, scope);
    for (std::size_t i = 0; i < expr.items.size(); ++i) {
        const Value right = evaluate(*expr.items[i], scope);
        place_ = expr.place;
        const std::string& sign = expr.operators[i];
        bool holds = false;
        if (sign == "==" || sign == "!=") {
            holds = equals(left, right) == (sign == "==");
        } else if (sign == "in" || sign == "not in") {
            holds = contains(right, left) == (sign == "in");
        } else {
            const int order = compare(left, right);
            holds = sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
        }
        if (!holds) {
            return Value::boolean(false);
        }
        left = right;
    }
    return Value::boolean(true);
}

Value TemplateRun::evaluateItem(const Expr& expr, Scope& scope) {
    const Value left = evaluate(*expr.left, scope);
    if (expr.right->kind == ExprKind::Slice) {
        return slice(left, *expr.right, scope);
    }
    const Value key = evaluate(*expr.right, scope);
    place_ = expr.place;
    return item(left, key);
}

Value TemplateRun::slice(const Value& value, const Expr& expr, Scope& scope) {
    const bool text = value.is(Kind::String);
    if (!text && !value.is(Kind::List) && !value.is(Kind::Tuple)) {
        return heap_.undefined("a part of a value of type " + std::string(typeName(value)));
    }
    const auto size = static_cast<std::int64_t>(text ? countCodePoints(value.bytes()) : value.sequence().items.size());
    const auto bound = [&](std::size_t i, std::int64_t standard) {
        const Value at = expr.items[i] != nullptr ? evaluate(*expr.items[i], scope) : Value::none();
        return at.is(Kind::None) ? standard : needInteger(at);
    };
    const std::int64_t step = bound(2, 1);
    if (step == 0) {
        fail("the step of a slice cannot be 0");
    }
    const auto clamped = [&](std::int64_t at) {
        at = at < 0 ? std::max<std::int64_t>(at, -size - 1) + size : at;
        return std::clamp<std::int64_t>(at, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
    };
    const std::int64_t first = expr.items[0] != nullptr ? clamped(bound(0, step < 0 ? size - 1 : 0))
                               : step < 0               ? size - 1
                                                        : 0;
    const Value stopValue = expr.items[1] != nullptr ? evaluate(*expr.items[1], scope) : Value::none();
    const std::int64_t stop = stopValue.is(Kind::None) ? (step < 0 ? -1 : size) : clamped(needInteger(stopValue));
    this->step(static_cast<std::size_t>(size) / 64);
    if (text && step == 1) {
        const std::size_t begin = byteOfIndex(value.bytes(), static_cast<std::size_t>(first));
        const std::size_t end = byteOfIndex(value.bytes(), static_cast<std::size_t>(std::max(first, stop)));
        return heap_.string(value.text().part(begin, end));
    }
    std::vector<std::size_t> starts;
    for (std::size_t at = 0; text && at < value.text().size(); at += utf8Length(value.bytes()[at])) {
        starts.push_back(at);
    }
    std::vector<Value> items;
    Text out;
    const std::uint64_t most = static_cast<std::uint64_t>(size) + 1;
    std::uint64_t taken = 0;
    for (std::int64_t i = first; (step > 0 ? i < stop : i > stop) && taken < most; i += step, ++taken) {
        const auto at = static_cast<std::size_t>(i);
        if (text) {
            out.append(value.text(), starts[at], at + 1 < starts.size() ? starts[at + 1] : value.text().size());
        } else {
            items.push_back(value.sequence().items[at]);
        }
        if (step > size || step < -size) {
            break;
        }
    }
    return text ? heap_.string(std::move(out)) : heap_.list(std::move(items), value.kind());
}

Value TemplateRun::item(const Value& value, const Value& key) {
    if (value.is(Kind::Undefined)) {
        fail(fmt::format("{} is undefined", value.undefinedName()));
    }
    if (value.is(Kind::Dict)) {
        step(value.dict().entries.size() / 8);
        if (Value* found = value.dict().find(key)) {
            return *found;
        }
    } else if (key.isWhole() && (value.is(Kind::List) || value.is(Kind::Tuple))) {
        const auto size = static_cast<std::int64_t>(value.sequence().items.size());
        const std::int64_t at = key.integer() < 0 ? key.integer() + size : key.integer();
        if (at >= 0 && at < size) {
            return value.sequence().items[static_cast<std::size_t>(at)];
        }
    } else if (key.isWhole() && value.is(Kind::String)) {
        const auto size = static_cast<std::int64_t>(countCodePoints(value.bytes()));
        step(static_cast<std::size_t>(size) / 64);
        const std::int64_t at = key.integer() < 0 ? key.integer() + size : key.integer();
        if (at >= 0 && at < size) {
            const std::size_t begin = byteOfIndex(value.bytes(), static_cast<std::size_t>(at));
            return heap_.string(value.text().part(begin, begin + utf8Length(value.bytes()[begin])));
        }
    }
    if (key.is(Kind::String)) {
        return attribute(value, key.bytes());
    }
    return heap_.undefined(fmt::format("{}[{}]", typeName(value), represented(key).bytes().substr(0, 40)));
}

Value TemplateRun::attribute(const Value& value, std::string_view name) {
    const auto missing = [&] {
        return heap_.undefined(fmt::format("'{} object' has no attribute '{}', which", typeName(value), name));
    };
    switch (value.kind()) {
    case Kind::Undefined:
        fail(fmt::format("{} is undefined", value.undefinedName()));
    case Kind::Loop:
        return loopAttribute(*this, value, name);
    case Kind::Namespace: {
        const Value* found = name.starts_with('_') ? nullptr : value.dict().find(name);
        return found != nullptr ? *found : missing();
    }
    case Kind::String:
        if (BuiltinFunction method = stringMethod(name)) {
            return builtin(std::string(name), method, value);
        }
        return missing();
    case Kind::Callable:
        if (value.callable().macro != nullptr && name == "name") {
            return heap_.string(value.callable().name);
        }
        if (BuiltinFunction method = containerMethod(Kind::Callable, name);
            method != nullptr && value.callable().macro == nullptr) {
            return builtin(std::string(name), method, value);
        }
        return missing();
    default:
        break;
    }
    if (BuiltinFunction method = containerMethod(value.kind(), name)) {
        return builtin(std::string(name), method, value);
    }
    if (value.is(Kind::Dict) && !name.starts_with("__")) {
        step(value.dict().entries.size() / 8);
        if (const Value* found = value.dict().find(name)) {
            return *found;
        }
    }
    return missing();
}

} // namespace vitrine::engine::jinja
