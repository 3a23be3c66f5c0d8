// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Methods of strings.

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";

std::string self(E& e, C& c) {
    return e.convert.text(c.required(0, "self"), "the text");
}

template <bool Upper> PyValue withCase(E& e, C& c) {
    std::string text = self(e, c);
    c.finish();
    std::transform(text.begin(), text.end(), text.begin(), [](char x) {
        const bool changes = Upper ? x >= 'a' && x <= 'z' : x >= 'A' && x <= 'Z';
        return changes ? static_cast<char>(x ^ 0x20) : x;
    });
    return e.heap.string(std::move(text));
}

template <bool AtEnd> PyValue beginsOrEnds(E& e, C& c) {
    const std::string text = self(e, c);
    const PyValue given = c.required(1, "prefix");
    c.finish();
    const auto* const several = given.as<PySequence>();
    for (const PyValue item : several != nullptr ? several->items : std::vector<PyValue>{given}) {
        const std::string part = e.convert.text(item, "what the text begins or ends with");
        if (part.size() <= text.size() && text.compare(AtEnd ? text.size() - part.size() : 0, part.size(), part) == 0) {
            return PyValue::boolean(true);
        }
    }
    return PyValue::boolean(false);
}

PyValue replace(E& e, C& c) {
    const std::string text = self(e, c);
    const std::string old = e.convert.text(c.required(1, "old"), "the part");
    const std::string fresh = e.convert.text(c.required(2, "new"), "the replacement");
    c.finish();
    if (old.empty()) {
        fail("replace() of an empty text");
    }
    std::string made;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t found = text.find(old, at);
        made.append(text, at, found - at);
        if (found == std::string::npos) {
            break;
        }
        made += fresh;
        e.heap.charge(1 + static_cast<std::int64_t>(fresh.size() / 16));
        at = found + old.size();
    }
    return e.heap.string(std::move(made));
}

PyValue split(E& e, C& c) {
    const std::string text = self(e, c);
    const auto given = c.optional(1, "sep");
    const auto most = c.optional(2, "maxsplit");
    c.finish();
    std::int64_t left = most ? e.convert.integer(*most, "maxsplit") : -1;
    std::vector<PyValue> parts;
    const auto add = [&](std::size_t begin, std::size_t end) {
        e.heap.charge(1);
        parts.emplace_back(e.heap.string(text.substr(begin, end - begin)));
    };
    if (!given || given->isNone()) {
        for (std::size_t at = text.find_first_not_of(kSpaces); at != std::string::npos;) {
            const std::size_t end = left-- == 0 ? text.size() : std::min(text.find_first_of(kSpaces, at), text.size());
            add(at, end);
            at = text.find_first_not_of(kSpaces, end);
        }
        return e.heap.list(std::move(parts));
    }
    const std::string separator = e.convert.text(*given, "the separator");
    if (separator.empty()) {
        fail("split() by an empty text");
    }
    std::size_t at = 0;
    for (std::size_t found = text.find(separator); found != std::string::npos && left-- != 0;
         found = text.find(separator, at)) {
        add(at, found);
        at = found + separator.size();
    }
    add(at, text.size());
    return e.heap.list(std::move(parts));
}

template <bool FromEnd> PyValue partition(E& e, C& c) {
    const std::string text = self(e, c);
    const std::string separator = e.convert.text(c.required(1, "sep"), "the separator");
    c.finish();
    const std::size_t found = FromEnd ? text.rfind(separator) : text.find(separator);
    const auto string = [&](std::string_view part) -> PyValue { return e.heap.string(std::string(part)); };
    const std::string_view whole = text;
    if (found == std::string::npos) {
        return FromEnd ? e.heap.tuple({string(""), string(""), string(whole)})
                       : e.heap.tuple({string(whole), string(""), string("")});
    }
    return e.heap.tuple(
        {string(whole.substr(0, found)), string(separator), string(whole.substr(found + separator.size()))});
}

template <bool AtBegin, bool AtEnd> PyValue strip(E& e, C& c) {
    const std::string text = self(e, c);
    const auto given = c.optional(1, "chars");
    c.finish();
    const std::string characters =
        given && !given->isNone() ? e.convert.text(*given, "the characters") : std::string(kSpaces);
    const std::size_t begin = AtBegin ? text.find_first_not_of(characters) : 0;
    const std::size_t end = AtEnd ? text.find_last_not_of(characters) + 1 : text.size();
    return e.heap.string(begin >= end ? std::string() : text.substr(begin, end - begin));
}

/// The text without a beginning or an end.
template <bool AtEnd> PyValue without(E& e, C& c) {
    std::string text = self(e, c);
    const std::string part = e.convert.text(c.required(1, "prefix"), "the part");
    c.finish();
    if (part.size() <= text.size() && text.compare(AtEnd ? text.size() - part.size() : 0, part.size(), part) == 0) {
        text.erase(AtEnd ? text.size() - part.size() : 0, part.size());
    }
    return e.heap.string(std::move(text));
}

bool isDigit(char x) {
    return x >= '0' && x <= '9';
}
bool isLetter(char x) {
    return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z');
}
bool isDigitOrLetter(char x) {
    return isDigit(x) || isLetter(x);
}
bool isSpace(char x) {
    return kSpaces.find(x) != std::string_view::npos;
}

template <bool (*Is)(char)> PyValue consistsOf(E& e, C& c) {
    const std::string text = self(e, c);
    c.finish();
    return PyValue::boolean(!text.empty() && std::all_of(text.begin(), text.end(), Is));
}

PyValue find(E& e, C& c) {
    const std::size_t found = self(e, c).find(e.convert.text(c.required(1, "sub"), "the part"));
    c.finish();
    return PyValue::integer(found == std::string::npos ? -1 : static_cast<std::int64_t>(found));
}

PyValue count(E& e, C& c) {
    const std::string text = self(e, c);
    const std::string part = e.convert.text(c.required(1, "sub"), "the part");
    c.finish();
    std::int64_t made = 0;
    for (std::size_t at = part.empty() ? std::string::npos : text.find(part); at != std::string::npos;
         at = text.find(part, at + part.size())) {
        ++made;
    }
    return PyValue::integer(made);
}

PyValue join(E& e, C& c) {
    const std::string separator = e.convert.text(c.required(0, "self"), "the separator");
    std::string text;
    bool first = true;
    for (const PyValue item : e.containers.iterate(c.required(1, "iterable"))) {
        text += (first ? "" : separator) + e.convert.text(item, "an item");
        first = false;
        e.heap.charge(1 + static_cast<std::int64_t>(separator.size() / 16));
    }
    c.finish();
    return e.heap.string(std::move(text));
}

/// "window_%d" % 4; how wide and how exact numbers are written is left out.
PyValue percentFormat(E& e, C& c) {
    const std::string text = self(e, c);
    const PyValue given = c.required(1, "values");
    c.finish();
    const auto* const tuple = given.as<PySequence>();
    const std::vector<PyValue> values =
        tuple != nullptr && tuple->kind == PyKind::Tuple ? tuple->items : std::vector<PyValue>{given};
    std::string made;
    std::size_t next = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] != '%') {
            made += text[at];
            continue;
        }
        at = text.find_first_not_of("0123456789.#+- l", at + 1);
        if (at == std::string::npos) {
            fail("the format ends after '%'");
        }
        if (text[at] == '%') {
            made += '%';
        } else if (next < values.size()) {
            made += pyText(values[next++]);
            e.heap.charge(1);
        } else {
            fail("the format names more values than there are");
        }
    }
    return e.heap.string(std::move(made));
}

/// "window_{}".format(4), with {0} and {name}; what stands after ":" is left out.
PyValue format(E& e, C& c) {
    const std::string text = self(e, c);
    std::string made;
    std::size_t next = 1;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool doubled = at + 1 < text.size() && text[at + 1] == text[at];
        if ((text[at] == '{' || text[at] == '}') && doubled) {
            made += text[at++];
            continue;
        }
        if (text[at] != '{') {
            made += text[at];
            continue;
        }
        const std::size_t end = std::min(text.find('}', at), text.size());
        const std::string field = text.substr(at + 1, std::min(text.find(':', at), end) - at - 1);
        const bool number = !field.empty() && field.size() < 4 && std::all_of(field.begin(), field.end(), isDigit);
        const std::size_t index = number ? static_cast<std::size_t>(std::stoi(field)) + 1 : field.empty() ? next++ : 0;
        const auto named = index == 0 ? c.keyword(field) : std::nullopt;
        if (!named && (index == 0 || index >= c.arguments.size())) {
            fail("the format names a value that is not given");
        }
        made += pyText(named ? *named : c.arguments[index]);
        e.heap.charge(1);
        at = end;
    }
    return e.heap.string(std::move(made));
}

constexpr std::array kStrings = std::to_array<BuiltinEntry>({
    {"str.format", format},
    {"str.__mod__", percentFormat},
    {"str.lower", withCase<false>},
    {"str.upper", withCase<true>},
    {"str.startswith", beginsOrEnds<false>},
    {"str.endswith", beginsOrEnds<true>},
    {"str.replace", replace},
    {"str.split", split},
    {"str.partition", partition<false>},
    {"str.rpartition", partition<true>},
    {"str.strip", strip<true, true>},
    {"str.lstrip", strip<true, false>},
    {"str.rstrip", strip<false, true>},
    {"str.removeprefix", without<false>},
    {"str.removesuffix", without<true>},
    {"str.isdigit", consistsOf<isDigit>},
    {"str.isnumeric", consistsOf<isDigit>},
    {"str.isalpha", consistsOf<isLetter>},
    {"str.isalnum", consistsOf<isDigitOrLetter>},
    {"str.isspace", consistsOf<isSpace>},
    {"str.find", find},
    {"str.count", count},
    {"str.join", join},
});

} // namespace

std::span<const BuiltinEntry> stringBuiltins() {
    return kStrings;
}

} // namespace vitrine::engine
