// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What may stand behind "|".
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/sequence_filters.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/chat/jinja/text_format.h"
#include "engine/chat/jinja/text_operations.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

struct FilterEntry {
    std::string_view name;
    BuiltinFunction call;
};

Value filterAbs(TemplateRun& run, Call& call) {
    if (!call.self.isNumber()) {
        run.fail("abs needs a number");
    }
    return call.self.is(Kind::Float) ? Value::real(std::fabs(call.self.number()))
           : call.self.integer() < 0 ? run.arithmetic("-", Value::integer(0), call.self)
                                     : Value::integer(call.self.integer());
}

Value filterAttr(TemplateRun& run, Call& call) {
    const Value name = run.need(call, 0, "name");
    const Value found = run.attribute(call.self, run.needText(name).bytes());
    // attr takes no items of a dict.
    const bool item = call.self.is(Kind::Dict) && !found.is(Kind::Callable);
    return item ? run.heap().undefined("'" + name.bytes() + "'") : found;
}

template <CaseChange Change> Value filterCase(TemplateRun& run, Call& call) {
    return run.heap().string(withCase(printed(call.self), Change));
}

/// Words begin behind white space and opening brackets and dashes; the rest is in lower case.
Value filterTitle(TemplateRun& run, Call& call) {
    const Text text = printed(call.self);
    Text out;
    bool first = true;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = at + utf8Length(text.bytes()[at]);
        out.append(withCase(text.part(at, end), first ? CaseChange::Upper : CaseChange::Lower));
        first = spaceBytesAt(text.bytes(), at) > 0 ||
                std::string_view("-({[<").find(text.bytes()[at]) != std::string_view::npos;
        at = end;
    }
    return run.heap().string(std::move(out));
}

Value filterCenter(TemplateRun& run, Call& call) {
    const std::int64_t width = run.needInteger(call.optional(0, "width").value_or(Value::integer(80)));
    return run.heap().string(padded(run, printed(call.self), width, " ", 2));
}

Value filterDefault(TemplateRun& run, Call& call) {
    const Value standard = call.optional(0, "default_value").value_or(run.heap().string(""));
    const bool falsy = isTrue(call.optional(1, "boolean").value_or(Value::boolean(false)));
    return call.self.is(Kind::Undefined) || (falsy && !isTrue(call.self)) ? standard : call.self;
}

Value filterEscape(TemplateRun& run, Call& call) {
    const Text text = printed(call.self);
    Text out;
    constexpr std::string_view kLetters = "&<>'\"";
    constexpr std::array<std::string_view, 5> kNames = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::size_t found = kLetters.find(text.bytes()[at]);
        if (found == std::string_view::npos) {
            out.append(text, at, at + 1);
        } else {
            out.append(kNames[found], text.originAt(at));
        }
    }
    return run.heap().string(std::move(out));
}

std::optional<double> numberOf(const std::string& text) {
    const std::string trimmed = stripped(Text(text), nullptr, true, true).bytes();
    const char* first = trimmed.data() + (trimmed.starts_with('+') ? 1 : 0);
    const char* last = trimmed.data() + trimmed.size();
    double value = 0;
    const auto [end, problem] = std::from_chars(first, last, value);
    return problem == std::errc() && end == last && first != last ? std::optional(value) : std::nullopt;
}

Value filterFloat(TemplateRun& run, Call& call) {
    const Value standard = call.optional(0, "default").value_or(Value::real(0));
    if (call.self.isNumber()) {
        return Value::real(call.self.number());
    }
    if (call.self.is(Kind::Undefined)) {
        run.fail(fmt::format("{} is undefined", call.self.undefinedName()));
    }
    const std::optional<double> value = call.self.is(Kind::String) ? numberOf(call.self.bytes()) : std::nullopt;
    return value ? Value::real(*value) : standard;
}

Value filterInt(TemplateRun& run, Call& call) {
    const Value standard = call.optional(0, "default").value_or(Value::integer(0));
    const std::int64_t base = run.needInteger(call.optional(1, "base").value_or(Value::integer(10)));
    const auto whole = [&](double value) {
        return std::fabs(value) < 9.2e18 ? Value::integer(static_cast<std::int64_t>(value)) : standard;
    };
    if (call.self.isNumber()) {
        return call.self.isWhole() ? Value::integer(call.self.integer()) : whole(call.self.number());
    }
    if (call.self.is(Kind::Undefined)) {
        run.fail(fmt::format("{} is undefined", call.self.undefinedName()));
    }
    if (!call.self.is(Kind::String) || base < 2 || base > 36) {
        return standard;
    }
    std::string text = stripped(call.self.text(), nullptr, true, true).bytes();
    std::erase(text, '_');
    const bool negative = text.starts_with('-');
    text.erase(0, negative || text.starts_with('+') ? 1 : 0);
    if ((base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) || (base == 8 && text.starts_with("0o")) ||
        (base == 2 && text.starts_with("0b"))) {
        text.erase(0, 2);
    }
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, static_cast<int>(base));
    if (problem == std::errc() && end == text.data() + text.size() && !text.empty() && !text.starts_with('-')) {
        return Value::integer(negative ? -value : value);
    }
    const std::optional<double> real = numberOf(call.self.bytes());
    return real ? whole(*real) : standard;
}

Value filterFormat(TemplateRun& run, Call& call) {
    const Value values = call.keywords.empty() ? run.heap().list(call.items, Kind::Tuple) : run.heap().dict();
    for (const auto& [name, value] : call.keywords) {
        values.dict().set(run.heap().string(name), value);
    }
    call.taken = call.items.size();
    call.keywords.clear();
    return run.heap().string(percentFormat(run, printed(call.self), values));
}

Value filterIndent(TemplateRun& run, Call& call) {
    const Value width = call.optional(0, "width").value_or(Value::integer(4));
    const bool first = isTrue(call.optional(1, "first").value_or(Value::boolean(false)));
    const bool blank = isTrue(call.optional(2, "blank").value_or(Value::boolean(false)));
    const Text indent = width.is(Kind::String) ? width.text() : padded(run, Text(), run.needInteger(width), " ", 0);
    Text text = printed(call.self);
    text.append("\n"); // so that the last line is one like the others
    Text out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.bytes().find('\n', at);
        run.heap().charge(indent.size());
        if (at == 0 ? first : (blank || end > at)) {
            out.append(indent);
        }
        out.append(text, at, end + 1 < text.size() ? end + 1 : end);
        at = end + 1;
    }
    return run.heap().string(std::move(out));
}

Value filterLength(TemplateRun& run, Call& call) {
    const Value& value = call.self;
    switch (value.kind()) {
    case Kind::Undefined:
        return Value::integer(0);
    case Kind::String:
        run.step(value.text().size() / 64);
        return Value::integer(static_cast<std::int64_t>(countCodePoints(value.bytes())));
    case Kind::List:
    case Kind::Tuple:
    case Kind::View:
        return Value::integer(static_cast<std::int64_t>(value.sequence().items.size()));
    case Kind::Dict:
        return Value::integer(static_cast<std::int64_t>(value.dict().entries.size()));
    case Kind::Loop:
        return Value::integer(static_cast<std::int64_t>(value.loop().items->size()));
    default:
        run.fail(fmt::format("a value of type {} has no length", typeName(value)));
    }
}

Value filterReplace(TemplateRun& run, Call& call) {
    const Text from = printed(run.need(call, 0, "old"));
    const Text to = printed(run.need(call, 1, "new"));
    const Value count = call.optional(2, "count").value_or(Value::none());
    return run.heap().string(
        replaced(run, printed(call.self), from.bytes(), to, count.is(Kind::None) ? -1 : run.needInteger(count)));
}

Value filterRound(TemplateRun& run, Call& call) {
    const std::int64_t places = run.needInteger(call.optional(0, "precision").value_or(Value::integer(0)));
    const std::string method = printed(call.optional(1, "method").value_or(run.heap().string("common"))).bytes();
    if (!call.self.isNumber()) {
        run.fail("round needs a number");
    }
    const double scale = std::pow(10.0, static_cast<double>(places));
    const double value = call.self.number();
    if (method == "ceil" || method == "floor") {
        return Value::real((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) / scale);
    }
    if (method != "common") {
        run.fail("the method of round must be common, ceil or floor");
    }
    if (call.self.isWhole()) {
        return places >= 0 ? Value::integer(call.self.integer())
                           : Value::integer(run.wholeOf(std::nearbyint(value * scale) / scale));
    }
    constexpr std::int64_t kMostRounded = 300;
    if (places < 0 || places > kMostRounded) {
        return Value::real(std::nearbyint(value * scale) / scale);
    }
    // The decimal text is rounded exactly, as Python does it.
    return Value::real(numberOf(fmt::format("{:.{}f}", value, places)).value_or(value));
}

Value filterString(TemplateRun& run, Call& call) {
    return run.heap().string(printed(call.self));
}

Value filterSame(TemplateRun& /*run*/, Call& call) {
    return call.self;
}

Value filterJson(TemplateRun& run, Call& call) {
    JsonStyle style;
    style.ascii = isTrue(call.optional(0, "ensure_ascii").value_or(Value::boolean(false)));
    const Value indent = call.optional(1, "indent").value_or(Value::none());
    const Value separators = call.optional(2, "separators").value_or(Value::none());
    style.sortKeys = isTrue(call.optional(3, "sort_keys").value_or(Value::boolean(false)));
    style.multiLine = !indent.is(Kind::None);
    if (indent.is(Kind::String)) {
        style.indent = indent.bytes();
    } else if (style.multiLine) {
        style.indent.assign(static_cast<std::size_t>(std::clamp<std::int64_t>(run.needInteger(indent), 0, 64)), ' ');
    }
    if (!separators.is(Kind::None)) {
        const std::vector<Value> pair = run.iterate(separators);
        if (pair.size() != 2) {
            run.fail("separators needs two texts");
        }
        style.itemSeparator = run.needText(pair[0]).bytes();
        style.keySeparator = run.needText(pair[1]).bytes();
    }
    return run.heap().string(jsonText(call.self, style));
}

Value filterTrim(TemplateRun& run, Call& call) {
    const Value letters = call.optional(0, "chars").value_or(Value::none());
    return run.heap().string(
        stripped(printed(call.self), letters.is(Kind::None) ? nullptr : &run.needText(letters).bytes(), true, true));
}

Value filterTruncate(TemplateRun& run, Call& call) {
    const std::int64_t length = run.needInteger(call.optional(0, "length").value_or(Value::integer(255)));
    const bool killWords = isTrue(call.optional(1, "killwords").value_or(Value::boolean(false)));
    const Text end = printed(call.optional(2, "end").value_or(run.heap().string("...")));
    const Value leewayValue = call.optional(3, "leeway").value_or(Value::none());
    const std::int64_t leeway = leewayValue.is(Kind::None) ? 5 : run.needInteger(leewayValue);
    const Text text = printed(call.self);
    const auto endSize = static_cast<std::int64_t>(countCodePoints(end.bytes()));
    if (length < endSize || leeway < 0) {
        run.fail("truncate: the length is shorter than its end");
    }
    if (static_cast<std::int64_t>(countCodePoints(text.bytes())) <= length + leeway) {
        return run.heap().string(text);
    }
    Text out = text.part(0, byteOfIndex(text.bytes(), static_cast<std::size_t>(length - endSize)));
    if (!killWords) {
        const std::size_t space = out.bytes().rfind(' ');
        out = space == std::string::npos ? out : out.part(0, space);
    }
    out.append(end);
    return run.heap().string(std::move(out));
}

Value filterUrlEncode(TemplateRun& run, Call& call) {
    if (call.self.isSequence() || call.self.is(Kind::Dict)) {
        run.fail("urlencode takes a text here; lists and dicts are not supported");
    }
    const Text text = printed(call.self);
    Text out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto c = static_cast<unsigned char>(text.bytes()[at]);
        const bool plain =
            std::isalnum(c) != 0 || std::string_view("_.-~/").find(static_cast<char>(c)) != std::string_view::npos;
        out.append(plain && c < 0x80 ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c),
                   text.originAt(at));
    }
    return run.heap().string(std::move(out));
}

Value filterWordCount(TemplateRun& /*run*/, Call& call) {
    const Text text = printed(call.self);
    std::int64_t words = 0;
    bool inside = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        const char32_t c = nextCodePoint(text.bytes(), at);
        const bool letter = isLetter(c) || isNumeric(c) || text.bytes()[begin] == '_';
        words += letter && !inside ? 1 : 0;
        inside = letter;
    }
    return Value::integer(words);
}

constexpr FilterEntry kFilters[] = {
    {"abs", filterAbs},
    {"attr", filterAttr},
    {"capitalize", filterCase<CaseChange::Capitalize>},
    {"center", filterCenter},
    {"count", filterLength},
    {"d", filterDefault},
    {"default", filterDefault},
    {"e", filterEscape},
    {"escape", filterEscape},
    {"float", filterFloat},
    {"forceescape", filterEscape},
    {"format", filterFormat},
    {"indent", filterIndent},
    {"int", filterInt},
    {"length", filterLength},
    {"lower", filterCase<CaseChange::Lower>},
    {"replace", filterReplace},
    {"round", filterRound},
    {"safe", filterSame},
    {"string", filterString},
    {"title", filterTitle},
    {"tojson", filterJson},
    {"trim", filterTrim},
    {"truncate", filterTruncate},
    {"upper", filterCase<CaseChange::Upper>},
    {"urlencode", filterUrlEncode},
    {"wordcount", filterWordCount},
};

} // namespace

BuiltinFunction filterNamed(std::string_view name) {
    const auto* found = std::ranges::find_if(kFilters, [&](const FilterEntry& entry) { return entry.name == name; });
    return found == std::end(kFilters) ? sequenceFilter(name) : found->call;
}

Value TemplateRun::filter(std::string_view name, Call& call) {
    step();
    const BuiltinFunction function = filterNamed(name);
    if (function == nullptr) {
        fail(fmt::format("the filter {} is not known", name));
    }
    const Value out = function(*this, call);
    finish(call, name);
    return out;
}

} // namespace vitrine::engine::jinja
