// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/rl/problems/math_form.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "engine/rl/problems/exact_number.h"

namespace vitrine::engine {

namespace {

constexpr int kDeepestLists = 6;

// What plainMath() writes for braces that are no groups of LaTeX.
constexpr char kSetBegin = '\x01', kSetEnd = '\x02';

bool isMathLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool isOpening(char c) {
    return c == '(' || c == '[' || c == '{' || c == kSetBegin;
}

bool isClosing(char c) {
    return c == ')' || c == ']' || c == '}' || c == kSetEnd;
}

std::string_view trimmedMath(std::string_view text) {
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '.' || text.back() == ':' || text.back() == ';')) {
        text.remove_suffix(1);
    }
    return text;
}

/// The parts between separators that are in no brackets. Intervals mix brackets, so only depth counts.
std::vector<std::string_view> topLevelParts(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        depth += isOpening(text[at]) ? 1 : isClosing(text[at]) ? -1 : 0;
        if (depth == 0 && text.substr(at).starts_with(separator)) {
            parts.push_back(text.substr(begin, at - begin));
            begin = at + separator.size();
            at = begin - 1;
        }
    }
    parts.push_back(text.substr(begin));
    return parts;
}

/// Whether the first and the last character are brackets of each other.
bool isBracketed(std::string_view text) {
    if (text.size() < 2 || !isOpening(text.front()) || !isClosing(text.back())) {
        return false;
    }
    int depth = 0;
    for (std::size_t at = 0; at + 1 < text.size(); ++at) {
        depth += isOpening(text[at]) ? 1 : isClosing(text[at]) ? -1 : 0;
        if (depth == 0) {
            return false;
        }
    }
    return true;
}

/// "5" of "x = 5" and of "f(2) = 5".
std::string_view withoutName(std::string_view text) {
    constexpr std::size_t kLongestName = 12;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals > kLongestName || text.find('=', equals + 1) != text.npos) {
        return text;
    }
    const std::string_view name = trimmedMath(text.substr(0, equals));
    const bool isName = !name.empty() && (isMathLetter(name.front()) || name.front() == '\\') &&
                        std::ranges::none_of(name, [](char c) { return c == ',' || c == '+' || c == '-' || c == '<'; });
    return isName ? trimmedMath(text.substr(equals + 1)) : text;
}

/// A text that is neither number nor list: one way to write groups, fractions, roots and words.
std::string textForm(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        const bool digitNext = at + 1 < text.size() && text[at + 1] >= '0' && text[at + 1] <= '9';
        if ((c == '^' || c == '_') && at + 3 < text.size() && text[at + 1] == '{' && text[at + 3] == '}') {
            out += {c, text[at + 2]};
            at += 3;
        } else if (c == '*') {
            const bool digits = digitNext && !out.empty() && out.back() >= '0' && out.back() <= '9';
            out += digits ? "*" : "";
        } else if (digitNext && c == 't' && out.ends_with("\\sqr")) {
            out += {c, '{', text[at + 1], '}'};
            ++at;
        } else if (c != ' ') {
            out += c;
        }
    }
    if (out.size() > 1 && std::ranges::all_of(out, isMathLetter)) {
        std::ranges::transform(out, out.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    }
    return out;
}

std::string formOf(std::string_view text, int depth);

std::string joinedForms(const std::vector<std::string_view>& parts, char separator, bool sorted, int depth) {
    std::vector<std::string> forms;
    forms.reserve(parts.size());
    for (const std::string_view part : parts) {
        forms.push_back(formOf(part, depth + 1));
    }
    if (sorted) {
        std::ranges::sort(forms);
    }
    std::string out;
    for (const std::string& form : forms) {
        out += out.empty() && &form == &forms.front() ? form : separator + form;
    }
    return out;
}

/// A list in brackets, or what stands in brackets without need; none: the text has no brackets around it.
std::optional<std::string> bracketForm(std::string_view text, int depth) {
    if (!isBracketed(text)) {
        return std::nullopt;
    }
    const char opening = text.front(), closing = text.back();
    const std::vector<std::string_view> parts = topLevelParts(text.substr(1, text.size() - 2), ",");
    const bool isSet = opening == kSetBegin || opening == '{';
    const bool isGroup = isSet || (opening == '(' && closing == ')');
    if (parts.size() == 1 && isGroup) {
        return formOf(parts.front(), depth + 1);
    }
    const std::string items = joinedForms(parts, ',', isSet, depth);
    return isSet ? "{" + items + "}" : opening + items + closing;
}

/// "a/b" of anything but numbers, as \frac{a}{b}.
std::optional<std::string> fractionForm(std::string_view text) {
    const std::vector<std::string_view> parts = topLevelParts(text, "/");
    if (parts.size() != 2 || trimmedMath(parts[0]).empty() || trimmedMath(parts[1]).empty() ||
        text.find_first_of("+-", 1) != std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view top = trimmedMath(parts[0]);
    const bool minus = top.front() == '-';
    top.remove_prefix(minus ? 1 : 0);
    return (minus ? "-\\frac{" : "\\frac{") + textForm(top) + "}{" + textForm(trimmedMath(parts[1])) + "}";
}

std::string formOf(std::string_view text, int depth) {
    text = withoutName(trimmedMath(text));
    if (std::optional<std::string> number = exactNumber(text)) {
        return *number;
    }
    if (depth >= kDeepestLists) {
        return textForm(text);
    }
    if (const auto parts = topLevelParts(text, "\\cup"); parts.size() > 1) {
        return joinedForms(parts, '|', true, depth);
    }
    if (std::optional<std::string> list = bracketForm(text, depth)) {
        return *list;
    }
    if (const auto parts = topLevelParts(text, ","); parts.size() > 1) {
        return "{" + joinedForms(parts, ',', true, depth) + "}";
    }
    if (std::optional<std::string> fraction = fractionForm(text)) {
        return *fraction;
    }
    text.remove_prefix(text.starts_with('+') ? 1 : 0);
    return textForm(text);
}

} // namespace

std::string mathForm(std::string_view text) {
    return formOf(plainMath(text), 0);
}

} // namespace vitrine::engine
