// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "engine/rl/problems/math_form.h"

namespace vitrine::engine {

namespace {

struct Spelling {
    std::string_view from;
    std::string_view to;
};

/// What looks the same or means the same. Of spellings that begin alike the longest stands first.
constexpr auto kSpellings = std::to_array<Spelling>({{"\\\\", "\\\\"},
                                                     {"^{\\circ}", ""},
                                                     {"^\\circ", ""},
                                                     {"\\circ", ""},
                                                     {"\\degree", ""},
                                                     {"\xC2\xB0", ""}, // the sign of degrees
                                                     {"{,}", ""},
                                                     {"\\displaystyle", ""},
                                                     {"\\limits", ""},
                                                     {"\\left", ""},
                                                     {"\\right", ""},
                                                     {"\\bigl", ""},
                                                     {"\\bigr", ""},
                                                     {"\\qquad", " "},
                                                     {"\\quad", " "},
                                                     {"\\!", ""},
                                                     {"\\,", ""},
                                                     {"\\;", " "},
                                                     {"\\:", " "},
                                                     {"\\ ", " "},
                                                     {"\\\n", " "},
                                                     {"~", " "},
                                                     {"\xC2\xA0", " "}, // a space that is not broken
                                                     {"\t", " "},
                                                     {"\n", " "},
                                                     {"\r", " "},
                                                     {"\\$", ""},
                                                     {"$", ""},
                                                     {"\\%", ""},
                                                     {"%", ""},
                                                     {"\\(", ""},
                                                     {"\\)", ""},
                                                     {"\\[", ""},
                                                     {"\\]", ""},
                                                     {"**", ""},
                                                     {"\\{", "\x01"},
                                                     {"\\}", "\x02"},
                                                     {"\\lbrace", "\x01"},
                                                     {"\\rbrace", "\x02"},
                                                     {"\\dfrac", "\\frac"},
                                                     {"\\tfrac", "\\frac"},
                                                     {"\\cfrac", "\\frac"},
                                                     {"\\cdot", "*"},
                                                     {"\\times", "*"},
                                                     {"\\leq", "\\le"},
                                                     {"\\geq", "\\ge"},
                                                     {"\xE2\x88\x92", "-"}, // Unicode's minus
                                                     {"\xC3\x97", "*"},
                                                     {"\xE2\x88\x9E", "\\infty"},
                                                     {"\xCF\x80", "\\pi"},
                                                     {"\xE2\x88\xAA", "\\cup"},
                                                     {"\xE2\x88\x9A", "\\sqrt"}});

constexpr std::array<std::string_view, 9> kWrappers = {"\\text",   "\\textbf", "\\textit", "\\textrm",      "\\mathrm",
                                                       "\\mathbf", "\\mbox",   "\\boxed",  "\\operatorname"};

/// Units that may stand behind a number without \text.
constexpr auto kUnits = std::to_array<std::string_view>(
    {"degrees", "degree", "dollars", "dollar", "cents",  "cent",    "percent", "units",   "unit",   "square", "cubic",
     "cm",      "mm",     "km",      "meters", "meter",  "metres",  "feet",    "foot",    "ft",     "inches", "inch",
     "miles",   "mile",   "mph",     "hours",  "hour",   "minutes", "minute",  "seconds", "second", "days",   "day",
     "weeks",   "week",   "years",   "year",   "pounds", "grams",   "kg",      "liters",  "points", "people", "ways"});

bool isNameLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The spelling that begins the text; null: none. A command ends where its letters do.
const Spelling* spellingAt(std::string_view text) {
    const auto found = std::ranges::find_if(kSpellings, [&](const Spelling& spelling) {
        const std::size_t size = spelling.from.size();
        const bool isCommand =
            spelling.from.size() > 2 && spelling.from.front() == '\\' && isNameLetter(spelling.from.back());
        return text.starts_with(spelling.from) && !(isCommand && text.size() > size && isNameLetter(text[size]));
    });
    return found == kSpellings.end() ? nullptr : &*found;
}

std::string respelled(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        if (const Spelling* const spelling = spellingAt(text)) {
            out += spelling->to;
            text.remove_prefix(spelling->from.size());
            continue;
        }
        const auto byte = static_cast<unsigned char>(text.front());
        if (byte >= 0x20 && byte != 0x7F) { // others would be taken for the signs of sets
            out += text.front();
        }
        text.remove_prefix(1);
    }
    return out;
}

/// The place behind the brace that closes the one before `at`; npos: there is none.
std::size_t behindBrace(std::string_view text, std::size_t at) {
    int depth = 1;
    for (; at < text.size(); ++at) {
        depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
        if (depth == 0) {
            return at + 1;
        }
    }
    return std::string_view::npos;
}

std::string_view withoutSpace(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string_view::npos ? std::string_view()
                                           : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// Whether a unit may stand behind this text.
bool endsLikeValue(std::string_view text) {
    text = withoutSpace(text);
    return !text.empty() && ((text.back() >= '0' && text.back() <= '9') || text.back() == '}');
}

bool isPower(std::string_view text) {
    text = withoutSpace(text);
    return text.empty() || text == "." || text == "^2" || text == "^3" || text == "^{2}" || text == "^{3}";
}

/// What stands in \text{...} and its like: a unit at the end is left out, "and" between values is a comma.
std::string unwrapped(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = text.substr(at);
        const auto wrapper = std::ranges::find_if(kWrappers, [&](std::string_view name) {
            return rest.starts_with(name) && rest.size() > name.size() && rest[name.size()] == '{';
        });
        const std::size_t begin = wrapper == kWrappers.end() ? 0 : at + wrapper->size() + 1;
        const std::size_t end = wrapper == kWrappers.end() ? text.npos : behindBrace(text, begin);
        if (end == text.npos) {
            out += text[at++];
            continue;
        }
        const std::string_view content = text.substr(begin, end - 1 - begin);
        const std::string_view word = withoutSpace(content);
        at = end;
        if (!out.empty() && (word == "and" || word == "or")) {
            out += ",";
        } else if (*wrapper != "\\boxed" && endsLikeValue(out) && isPower(text.substr(at))) {
            at = text.size();
        } else {
            out += content;
        }
    }
    return out;
}

/// Without "cm" or "square units" behind a value.
std::string_view withoutUnits(std::string_view text) {
    for (int i = 0; i < 3; ++i) {
        std::string_view shorter = withoutSpace(text);
        while (shorter.ends_with('.')) {
            shorter.remove_suffix(1);
        }
        for (const std::string_view power : {"^2", "^3", "^{2}", "^{3}"}) {
            if (shorter.ends_with(power) && shorter.size() > power.size() &&
                isNameLetter(shorter[shorter.size() - power.size() - 1])) {
                shorter.remove_suffix(power.size());
            }
        }
        std::size_t begin = shorter.size();
        while (begin > 0 && isNameLetter(shorter[begin - 1])) {
            --begin;
        }
        const bool isUnit = std::ranges::find(kUnits, shorter.substr(begin)) != kUnits.end();
        const std::string_view before = shorter.substr(0, begin);
        if (!isUnit || before.ends_with('\\') || before.empty()) {
            return text;
        }
        text = before;
    }
    return text;
}

} // namespace

std::string plainMath(std::string_view text) {
    constexpr int kDeepestWrappers = 3;
    std::string plain = respelled(text);
    for (int i = 0; i < kDeepestWrappers; ++i) {
        plain = unwrapped(withoutSpace(plain));
    }
    return std::string(withoutSpace(withoutUnits(plain)));
}

} // namespace vitrine::engine
