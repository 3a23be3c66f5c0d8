// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of Python's str. Positions that Python counts in characters are counted in characters here too.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/chat/jinja/text_format.h"
#include "engine/chat/jinja/text_operations.h"
#include "engine/tokenizer/unicode_text.h"

namespace vitrine::engine::jinja {

namespace {

struct MethodEntry {
    std::string_view name;
    BuiltinFunction call;
};

Value made(TemplateRun& run, Text text) {
    run.step(text.size() / 64);
    return run.heap().string(std::move(text));
}

template <CaseChange Change> Value changedCase(TemplateRun& run, Call& call) {
    return made(run, withCase(run.needText(call.self), Change));
}

template <bool Left, bool Right> Value strip(TemplateRun& run, Call& call) {
    const std::optional<Value> letters = call.optional(0, "chars");
    const Text& text = run.needText(call.self);
    return made(run, stripped(text, !letters || letters->is(Kind::None) ? nullptr : &run.needText(*letters).bytes(),
                              Left, Right));
}

Value split(TemplateRun& run, Call& call, bool fromRight) {
    const Text& text = run.needText(call.self);
    const Value separator = call.optional(0, "sep").value_or(Value::none());
    const std::int64_t most = run.needInteger(call.optional(1, "maxsplit").value_or(Value::integer(-1)));
    if (separator.is(Kind::String) && separator.text().empty()) {
        run.fail("split: the separator is empty");
    }
    std::vector<Value> parts;
    for (const auto& [begin, end] : splitRanges(
             text.bytes(), separator.is(Kind::None) ? nullptr : &run.needText(separator).bytes(), most, fromRight)) {
        run.step();
        parts.push_back(run.heap().string(text.part(begin, end)));
    }
    return run.heap().list(std::move(parts));
}

Value splitLeft(TemplateRun& run, Call& call) {
    return split(run, call, false);
}
Value splitRight(TemplateRun& run, Call& call) {
    return split(run, call, true);
}

Value splitLines(TemplateRun& run, Call& call) {
    const Text& text = run.needText(call.self);
    const bool keep = isTrue(call.optional(0, "keepends").value_or(Value::boolean(false)));
    std::vector<Value> lines;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        std::size_t next = at;
        while (end < text.size()) {
            next = end;
            const char32_t c = nextCodePoint(text.bytes(), next);
            if ((c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029) {
                next += c == '\r' && next < text.size() && text.bytes()[next] == '\n' ? 1 : 0;
                break;
            }
            end = next;
        }
        run.step();
        lines.push_back(run.heap().string(text.part(at, keep ? next : end)));
        at = next;
    }
    return run.heap().list(std::move(lines));
}

/// str.startswith and endswith: one text or a tuple of them.
template <bool Start> Value startsOrEnds(TemplateRun& run, Call& call) {
    const std::string& text = run.needText(call.self).bytes();
    const Value wanted = run.need(call, 0, "prefix");
    const auto fits = [&](const Value& each) {
        const std::string& part = run.needText(each).bytes();
        return Start ? text.starts_with(part) : text.ends_with(part);
    };
    return Value::boolean(wanted.is(Kind::Tuple) ? std::ranges::any_of(wanted.sequence().items, fits) : fits(wanted));
}

Value replace(TemplateRun& run, Call& call) {
    const Value from = run.need(call, 0, "old");
    const Value to = run.need(call, 1, "new");
    const std::int64_t most = run.needInteger(call.optional(2, "count").value_or(Value::integer(-1)));
    return made(run, replaced(run, run.needText(call.self), run.needText(from).bytes(), run.needText(to), most));
}

template <bool FromRight, bool MustBe> Value find(TemplateRun& run, Call& call) {
    const std::string& text = run.needText(call.self).bytes();
    const Value wanted = run.need(call, 0, "sub");
    const std::string& part = run.needText(wanted).bytes();
    const std::size_t at = FromRight ? text.rfind(part) : text.find(part);
    run.step(text.size() / 64);
    if (at == std::string::npos) {
        if (MustBe) {
            run.fail("the text is not found");
        }
        return Value::integer(-1);
    }
    return Value::integer(static_cast<std::int64_t>(countCodePoints(std::string_view(text).substr(0, at))));
}

Value count(TemplateRun& run, Call& call) {
    const std::string& text = run.needText(call.self).bytes();
    const Value wanted = run.need(call, 0, "sub");
    const std::string& part = run.needText(wanted).bytes();
    run.step(text.size() / 64);
    if (part.empty()) {
        return Value::integer(static_cast<std::int64_t>(countCodePoints(text)) + 1);
    }
    std::int64_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) {
        ++found;
    }
    return Value::integer(found);
}

Value join(TemplateRun& run, Call& call) {
    const Text& separator = run.needText(call.self);
    Text out;
    bool first = true;
    for (const Value& item : run.iterate(run.need(call, 0, "iterable"))) {
        run.step();
        if (!std::exchange(first, false)) {
            out.append(separator);
        }
        out.append(run.needText(item));
    }
    return made(run, std::move(out));
}

template <bool FromRight> Value partition(TemplateRun& run, Call& call) {
    const Text& text = run.needText(call.self);
    const Value wanted = run.need(call, 0, "sep");
    const std::string& part = run.needText(wanted).bytes();
    const std::size_t at = FromRight ? text.bytes().rfind(part) : text.bytes().find(part);
    const std::size_t size = text.size();
    const bool found = at != std::string::npos;
    const std::size_t begin = found ? at : FromRight ? 0 : size;
    const std::size_t end = found ? at + part.size() : begin;
    Heap& heap = run.heap();
    return heap.list(
        {heap.string(text.part(0, begin)), heap.string(text.part(begin, end)), heap.string(text.part(end, size))},
        Kind::Tuple);
}

template <bool Prefix> Value removeEnd(TemplateRun& run, Call& call) {
    const Text& text = run.needText(call.self);
    const Value wanted = run.need(call, 0, "text");
    const std::string& part = run.needText(wanted).bytes();
    const bool has = Prefix ? text.bytes().starts_with(part) : text.bytes().ends_with(part);
    const std::size_t cut = has ? part.size() : 0;
    return made(run, Prefix ? text.part(cut, text.size()) : text.part(0, text.size() - cut));
}

template <int Side> Value justify(TemplateRun& run, Call& call) {
    const std::int64_t width = run.needInteger(run.need(call, 0, "width"));
    const Value fill = call.optional(1, "fillchar").value_or(run.heap().string(" "));
    return made(run, padded(run, run.needText(call.self), width, run.needText(fill).bytes(), Side));
}

Value zeroFill(TemplateRun& run, Call& call) {
    const Text& text = run.needText(call.self);
    const std::int64_t width = run.needInteger(run.need(call, 0, "width"));
    const std::size_t sign = !text.empty() && (text.bytes()[0] == '-' || text.bytes()[0] == '+') ? 1 : 0;
    Text out = text.part(0, sign);
    out.append(padded(run, text.part(sign, text.size()), width - static_cast<std::int64_t>(sign), "0", 1));
    return made(run, std::move(out));
}

template <CharacterClass Class> Value isAll(TemplateRun& run, Call& call) {
    return Value::boolean(consistsOf(run.needText(call.self).bytes(), Class));
}

Value format(TemplateRun& run, Call& call) {
    Text out = braceFormat(run, run.needText(call.self), call);
    call.taken = call.items.size();
    call.keywords.clear();
    return made(run, std::move(out));
}

constexpr MethodEntry kMethods[] = {
    {"capitalize", changedCase<CaseChange::Capitalize>},
    {"casefold", changedCase<CaseChange::Fold>},
    {"center", justify<2>},
    {"count", count},
    {"endswith", startsOrEnds<false>},
    {"find", find<false, false>},
    {"format", format},
    {"index", find<false, true>},
    {"isalnum", isAll<CharacterClass::Alphanumeric>},
    {"isalpha", isAll<CharacterClass::Letters>},
    {"isascii", isAll<CharacterClass::Ascii>},
    {"isdecimal", isAll<CharacterClass::Digits>},
    {"isdigit", isAll<CharacterClass::Digits>},
    {"islower", isAll<CharacterClass::Lower>},
    {"isnumeric", isAll<CharacterClass::Numbers>},
    {"isspace", isAll<CharacterClass::Spaces>},
    {"isupper", isAll<CharacterClass::Upper>},
    {"join", join},
    {"ljust", justify<0>},
    {"lower", changedCase<CaseChange::Lower>},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", removeEnd<true>},
    {"removesuffix", removeEnd<false>},
    {"replace", replace},
    {"rfind", find<true, false>},
    {"rindex", find<true, true>},
    {"rjust", justify<1>},
    {"rpartition", partition<true>},
    {"rsplit", splitRight},
    {"rstrip", strip<false, true>},
    {"split", splitLeft},
    {"splitlines", splitLines},
    {"startswith", startsOrEnds<true>},
    {"strip", strip<true, true>},
    {"swapcase", changedCase<CaseChange::Swap>},
    {"title", changedCase<CaseChange::Title>},
    {"upper", changedCase<CaseChange::Upper>},
    {"zfill", zeroFill},
};

} // namespace

BuiltinFunction stringMethod(std::string_view name) {
    const auto* found = std::ranges::find_if(kMethods, [&](const MethodEntry& entry) { return entry.name == name; });
    return found == std::end(kMethods) ? nullptr : found->call;
}

} // namespace vitrine::engine::jinja
