// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/chat/jinja/text_format.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

constexpr std::int64_t kMostRepeats = std::int64_t{1} << 24;

/// Python's floor division and remainder; nothing when the result does not fit.
bool floorDivide(std::int64_t a, std::int64_t b, std::int64_t& quotient, std::int64_t& remainder) {
    if (a == INT64_MIN && b == -1) {
        return false;
    }
    quotient = a / b;
    remainder = a % b;
    if (remainder != 0 && (remainder < 0) != (b < 0)) {
        --quotient;
        remainder += b;
    }
    return true;
}

Value wholeArithmetic(TemplateRun& run, std::string_view sign, std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    std::int64_t other = 0;
    bool fits = true;
    if (sign == "+") {
        fits = !__builtin_add_overflow(a, b, &out);
    } else if (sign == "-") {
        fits = !__builtin_sub_overflow(a, b, &out);
    } else if (sign == "*") {
        fits = !__builtin_mul_overflow(a, b, &out);
    } else if (sign == "**") {
        if (b < 0) {
            return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
        }
        out = 1;
        constexpr std::int64_t kMostFactors = 4096;
        for (std::int64_t i = 0; fits && i < std::min(b, kMostFactors); ++i) {
            fits = !__builtin_mul_overflow(out, a, &out);
        }
        fits = fits && (b <= kMostFactors || a == 0 || a == 1);
    } else if (b == 0) {
        run.fail("division by zero");
    } else if (sign == "/") {
        return Value::real(static_cast<double>(a) / static_cast<double>(b));
    } else {
        fits = sign == "//" ? floorDivide(a, b, out, other) : floorDivide(a, b, other, out);
    }
    if (!fits) {
        run.fail("the result is a whole number of more than 64 bits");
    }
    return Value::integer(out);
}

Value realArithmetic(TemplateRun& run, std::string_view sign, double a, double b) {
    if (sign == "+" || sign == "-" || sign == "*") {
        return Value::real(sign == "+" ? a + b : sign == "-" ? a - b : a * b);
    }
    if (sign == "**") {
        return Value::real(std::pow(a, b));
    }
    if (b == 0) {
        run.fail("division by zero");
    }
    if (sign == "/") {
        return Value::real(a / b);
    }
    double rest = std::fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
    }
    return Value::real(sign == "%" ? rest : std::floor((a - rest) / b + 0.5));
}

Value repeated(TemplateRun& run, const Value& value, std::int64_t count) {
    count = std::max<std::int64_t>(count, 0);
    const std::size_t size = value.is(Kind::String) ? value.text().size() : value.sequence().items.size();
    if (count > kMostRepeats || size * static_cast<std::size_t>(count) > static_cast<std::size_t>(kMostRepeats)) {
        run.fail("the repeated value is too large");
    }
    run.step(size * static_cast<std::size_t>(count) / 64);
    if (value.is(Kind::String)) {
        Text out;
        for (std::int64_t i = 0; i < count && size > 0; ++i) {
            out.append(value.text());
        }
        return run.heap().string(std::move(out));
    }
    std::vector<Value> items;
    for (std::int64_t i = 0; i < count && size > 0; ++i) {
        items.insert(items.end(), value.sequence().items.begin(), value.sequence().items.end());
    }
    return run.heap().list(std::move(items), value.kind());
}

bool canRepeat(const Value& value) {
    return value.is(Kind::String) || value.is(Kind::List) || value.is(Kind::Tuple);
}

int orderOf(TemplateRun& run, const Value& a, const Value& b) {
    run.step();
    for (const Value* each : {&a, &b}) {
        if (each->is(Kind::Undefined)) {
            run.fail(fmt::format("{} is undefined", each->undefinedName()));
        }
    }
    if (a.isNumber() && b.isNumber()) {
        if (a.isWhole() && b.isWhole()) {
            return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
        }
        return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
    }
    if (a.is(Kind::String) && b.is(Kind::String)) {
        const int order = a.bytes().compare(b.bytes()); // the order of bytes is that of code points
        return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    if (a.kind() == b.kind() && (a.is(Kind::List) || a.is(Kind::Tuple))) {
        const std::vector<Value>& x = a.sequence().items;
        const std::vector<Value>& y = b.sequence().items;
        for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
            if (!equals(x[i], y[i])) {
                return orderOf(run, x[i], y[i]);
            }
        }
        return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
    }
    run.fail(fmt::format("values of the types {} and {} have no order", typeName(a), typeName(b)));
}

bool holds(TemplateRun& run, const Value& container, const Value& value) {
    switch (container.kind()) {
    case Kind::Undefined:
        return false;
    case Kind::String:
        run.step(container.text().size() / 64);
        return container.bytes().find(run.needText(value).bytes()) != std::string::npos;
    case Kind::Dict:
        run.step(container.dict().entries.size() / 8);
        return container.dict().find(value) != nullptr;
    case Kind::List:
    case Kind::Tuple:
    case Kind::View:
    case Kind::Iterator:
        run.step(container.sequence().items.size() / 8);
        return std::ranges::any_of(container.sequence().items, [&](const Value& each) { return equals(each, value); });
    default:
        run.fail(fmt::format("a value of type {} holds no others", typeName(container)));
    }
}

} // namespace

Value TemplateRun::arithmetic(std::string_view sign, const Value& a, const Value& b) {
    for (const Value* each : {&a, &b}) {
        if (each->is(Kind::Undefined)) {
            fail(fmt::format("{} is undefined", each->undefinedName()));
        }
    }
    if (a.isNumber() && b.isNumber()) {
        return a.isWhole() && b.isWhole() ? wholeArithmetic(*this, sign, a.integer(), b.integer())
                                          : realArithmetic(*this, sign, a.number(), b.number());
    }
    if (sign == "+" && a.is(Kind::String) && b.is(Kind::String)) {
        Text out = a.text();
        out.append(b.text());
        return heap_.string(std::move(out));
    }
    if (sign == "+" && a.kind() == b.kind() && (a.is(Kind::List) || a.is(Kind::Tuple))) {
        std::vector<Value> items = a.sequence().items;
        items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
        return heap_.list(std::move(items), a.kind());
    }
    if (sign == "*" && ((canRepeat(a) && b.isWhole()) || (canRepeat(b) && a.isWhole()))) {
        return canRepeat(a) ? repeated(*this, a, b.integer()) : repeated(*this, b, a.integer());
    }
    if (sign == "%" && a.is(Kind::String)) {
        return heap_.string(percentFormat(*this, a.text(), b));
    }
    fail(fmt::format("{} does not go with values of the types {} and {}", sign, typeName(a), typeName(b)));
}

int TemplateRun::compare(const Value& a, const Value& b) {
    return orderOf(*this, a, b);
}

bool TemplateRun::contains(const Value& container, const Value& value) {
    return holds(*this, container, value);
}

std::vector<Value> TemplateRun::iterate(const Value& value) {
    std::vector<Value> out;
    switch (value.kind()) {
    case Kind::Undefined:
        return out;
    case Kind::List:
    case Kind::Tuple:
    case Kind::View:
        step(value.sequence().items.size() / 8);
        return value.sequence().items;
    case Kind::Iterator:
        if (std::exchange(value.sequence().read, true)) {
            return out;
        }
        return value.sequence().items;
    case Kind::Dict:
        for (const auto& [key, held] : value.dict().entries) {
            out.push_back(key);
        }
        return out;
    case Kind::String:
        for (std::size_t at = 0; at < value.text().size();) {
            const std::size_t end = at + utf8Length(value.bytes()[at]);
            step();
            out.push_back(heap_.string(value.text().part(at, end)));
            at = end;
        }
        return out;
    default:
        fail(fmt::format("a value of type {} cannot be gone over", typeName(value)));
    }
}

} // namespace vitrine::engine::jinja
