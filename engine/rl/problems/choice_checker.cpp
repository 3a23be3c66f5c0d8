// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The letter of a choice, A to E. The last \boxed{B} or "Answer: B" counts; without any the last "(B)"; without any the
// letter that the answer begins with: "B", "B) because". Letters of such statements may be in brackets or bold.

#include <cstddef>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/rl/problems/checker_list.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

namespace {

constexpr char kNoChoice = '\0';

bool isWordLetter(std::string_view text, std::size_t at) {
    return at < text.size() &&
           ((text[at] >= 'a' && text[at] <= 'z') || (text[at] >= 'A' && text[at] <= 'Z') || text[at] == '_');
}

bool isChoice(std::string_view text, std::size_t at) {
    return at < text.size() && text[at] >= 'A' && text[at] <= 'E';
}

/// The choice that stands at the beginning of a text, behind the signs of `skipped`.
char choiceAt(std::string_view text, std::string_view skipped) {
    const std::size_t at = text.substr(0, 24).find_first_not_of(skipped);
    return at != std::string_view::npos && isChoice(text, at) && !isWordLetter(text, at + 1) ? text[at] : kNoChoice;
}

/// The choice behind "\boxed" or "answer", which end before `text`.
char statedChoice(std::string_view text) {
    constexpr std::string_view kSigns = " \t\n:=*({[$\"";
    if (text.starts_with(" is ") || text.starts_with(" is:")) {
        text.remove_prefix(3);
    }
    if (text.starts_with("{\\text{") || text.starts_with("{\\textbf{") || text.starts_with("{\\mathrm{")) {
        text.remove_prefix(text.find('{', 1));
    }
    return choiceAt(text, kSigns);
}

bool beginsWith(std::string_view text, std::string_view lowerWord) {
    return text.size() >= lowerWord.size() && lastPlaceOf(text.substr(0, lowerWord.size()), lowerWord) == 0;
}

char lastChoice(std::string_view text) {
    constexpr std::string_view kBoxed = "\\boxed", kAnswer = "answer";
    char stated = kNoChoice, bracketed = kNoChoice;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::string_view rest = text.substr(at);
        char choice = kNoChoice;
        if (rest.starts_with(kBoxed)) {
            choice = statedChoice(rest.substr(kBoxed.size()));
        } else if (!isWordLetter(text, at - 1) && beginsWith(rest, kAnswer)) { // nothing is at npos
            choice = statedChoice(rest.substr(kAnswer.size()));
        }
        stated = choice == kNoChoice ? stated : choice;
        if (rest.size() >= 3 && rest[0] == '(' && isChoice(rest, 1) && rest[2] == ')') {
            bracketed = rest[1];
        }
    }
    if (stated != kNoChoice || bracketed != kNoChoice) {
        return stated != kNoChoice ? stated : bracketed;
    }
    const std::string_view bare = trimmedText(text);
    const std::size_t at = bare.find_first_not_of('*');
    const bool ends =
        at != std::string_view::npos &&
        (at + 1 >= bare.size() || std::string_view("*).:,\n").find(bare[at + 1]) != std::string_view::npos);
    return ends && isChoice(bare, at) ? bare[at] : kNoChoice;
}

/// The letter of a row's "B", "b" or "(B)"; kNoChoice: it has none.
char expectedChoice(const nlohmann::json& expected) {
    const std::string text = expectedText(expected);
    std::string_view bare = trimmedText(text);
    bare.remove_prefix(bare.starts_with('(') ? 1 : 0);
    const bool alone = bare.size() == 1 || (bare.size() == 2 && (bare[1] == ')' || bare[1] == '.'));
    if (alone && bare[0] >= 'a' && bare[0] <= 'e') {
        return static_cast<char>(bare[0] - 'a' + 'A');
    }
    return alone && isChoice(bare, 0) ? bare[0] : kNoChoice;
}

void requireChoice(const nlohmann::json& answer) {
    if (expectedChoice(answer) == kNoChoice) {
        throw base::BadInput(
            fmt::format("answer: must be one of the letters A to E, not {}", quotedForMessage(expectedText(answer))));
    }
}

double judgeChoice(const nlohmann::json& expected, std::string_view answer) {
    const char given = lastChoice(answer);
    return given != kNoChoice && given == expectedChoice(expected) ? 1 : 0;
}

} // namespace

const Checker& choiceChecker() {
    static const Checker kChecker = {"choice", "the letter of a choice, A to E, that the answer states last",
                                     requireChoice, judgeChoice};
    return kChecker;
}

} // namespace vitrine::engine
