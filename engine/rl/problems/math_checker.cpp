// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Mathematical answers as math data sets have them: a number or LaTeX. The answer is what the last \boxed{...} has;
// without one what follows the last "Answer:" in its line; without that the whole text if it is short and a number,
// else the last number or fraction. math_form.h says which answers are equal.

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "engine/rl/problems/answer_number.h"
#include "engine/rl/problems/checker_list.h"
#include "engine/rl/problems/exact_number.h"
#include "engine/rl/problems/math_form.h"

namespace vitrine::engine {

namespace {

constexpr std::string_view kBox = "\\boxed";

/// What the last box has whose braces are balanced; none: there is none. One walk, whatever is open.
std::optional<std::string_view> lastBox(std::string_view text) {
    struct Open {
        std::size_t begin; ///< behind the brace
        bool isBox;
    };
    std::vector<Open> open;
    std::optional<std::string_view> box;
    bool boxIsNext = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '\\') {
            boxIsNext = text.substr(at).starts_with(kBox);
            at += boxIsNext ? kBox.size() - 1 : 1; // behind a backslash a brace is a sign
        } else if (c == '{') {
            open.push_back({at + 1, boxIsNext});
            boxIsNext = false;
        } else if (c == '}' && !open.empty()) {
            const Open last = open.back();
            open.pop_back();
            if (last.isBox && (!box || last.begin > static_cast<std::size_t>(box->data() - text.data()))) {
                box = text.substr(last.begin, at - last.begin);
            }
            boxIsNext = false;
        } else {
            boxIsNext = boxIsNext && c == ' ';
        }
    }
    return box;
}

/// The line behind the last "Answer:"; none: there is none that says something.
std::optional<std::string_view> statedAnswer(std::string_view text) {
    constexpr std::string_view kAnswer = "answer:";
    const std::size_t at = lastPlaceOf(text, kAnswer);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view rest = text.substr(at + kAnswer.size());
    const std::size_t begin = rest.find_first_not_of(" \t\r\n*");
    rest = begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
    rest = trimmedText(rest.substr(0, rest.find('\n')));
    while (rest.ends_with('*')) {
        rest.remove_suffix(1);
    }
    return rest.empty() ? std::nullopt : std::optional(rest);
}

std::size_t behindGroup(std::string_view text, std::size_t at) {
    const std::size_t end = at < text.size() && text[at] == '{' ? text.find('}', at) : std::string_view::npos;
    return end == std::string_view::npos ? end : end + 1;
}

/// The last number, with the fraction that it is the bottom of.
std::string_view lastValue(std::string_view text, const NumberPlace& number) {
    const std::size_t fraction = text.rfind("frac{", number.begin);
    if (fraction != std::string_view::npos && number.begin - fraction < kLongestMath) {
        const std::size_t top = behindGroup(text, fraction + 4);
        const std::size_t end = top == std::string_view::npos ? top : behindGroup(text, top);
        if (end != std::string_view::npos && number.end < end) {
            std::size_t begin = text.rfind('\\', fraction);
            begin = begin == std::string_view::npos ? fraction : begin;
            begin -= begin > 0 && text[begin - 1] == '-' ? 1 : 0;
            return text.substr(begin, end - begin);
        }
    }
    const std::size_t slash = text.substr(0, number.begin).find_last_not_of(' ');
    if (slash != std::string_view::npos && text[slash] == '/') {
        const std::string_view before =
            trimmedText(text.substr(0, slash).substr(slash - std::min(slash, kLongestMath)));
        const std::optional<NumberPlace> top = lastNumberPlace(before);
        if (top && top->end == before.size()) {
            const auto begin = static_cast<std::size_t>(before.data() - text.data()) + top->begin;
            return text.substr(begin, number.end - begin);
        }
    }
    return text.substr(number.begin, number.end - number.begin);
}

/// "34" of "34 apples": the only number of a text that has nothing but words beside it.
std::optional<std::string_view> numberAmongWords(std::string_view text) {
    const std::optional<NumberPlace> number = lastNumberPlace(text);
    const auto isWordOf = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto areWords = [](std::string_view words) {
        return words.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .:;!$") ==
               std::string_view::npos;
    };
    if (!number || !areWords(text.substr(0, number->begin)) || !areWords(text.substr(number->end)) ||
        (number->end < text.size() && isWordOf(text[number->end]))) {
        return std::nullopt;
    }
    return text.substr(number->begin, number->end - number->begin);
}

std::string boundedForm(std::string_view text) {
    return text.size() > kLongestMath ? std::string(trimmedText(text)) : mathForm(text);
}

/// The form of what an answer says.
std::string formOfAnswer(std::string_view answer) {
    std::optional<std::string_view> stated = lastBox(answer);
    stated = stated ? stated : statedAnswer(answer);
    const std::string_view said = stated ? *stated : trimmedText(answer);
    std::string form = boundedForm(said);
    if (said.size() > kLongestMath ? stated.has_value() : exactNumber(form).has_value()) {
        return form;
    }
    if (stated) {
        const std::optional<std::string_view> number = numberAmongWords(said);
        return number ? boundedForm(*number) : form;
    }
    const std::optional<NumberPlace> number = lastNumberPlace(said);
    return number ? boundedForm(lastValue(said, *number)) : form;
}

/// The form of a row's answer, which may be a solution that ends with "#### 42" or has a box.
std::string expectedForm(const nlohmann::json& expected) {
    const std::string text = expectedText(expected);
    const std::optional<std::string_view> box = lastBox(text);
    return boundedForm(box ? *box : behindHashes(text));
}

void requireMath(const nlohmann::json& answer) {
    if (expectedForm(answer).empty()) {
        throw base::BadInput("answer: says nothing; give a number or LaTeX, or remove the row");
    }
}

double judgeMath(const nlohmann::json& expected, std::string_view answer) {
    const std::string right = expectedForm(expected);
    if (right.empty()) {
        return 0;
    }
    const std::string_view whole = trimmedText(answer);
    const bool same = formOfAnswer(answer) == right ||
                      // An answer may be nothing but the expected text.
                      (whole.size() <= kLongestMath && !exactNumber(right) && mathForm(whole) == right);
    return same ? 1 : 0;
}

} // namespace

const Checker& mathChecker() {
    static const Checker kChecker = {"math", "a number or LaTeX, boxed or behind \"Answer:\"", requireMath, judgeMath};
    return kChecker;
}

} // namespace vitrine::engine
