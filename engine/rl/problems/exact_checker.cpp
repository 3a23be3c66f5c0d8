// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The answer is the expected text, byte by byte, without the white space around both.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/rl/problems/checker_list.h"

namespace vitrine::engine {

namespace {

void requireExactAnswer(const nlohmann::json& answer) {
    if (trimmedText(expectedText(answer)).empty()) {
        throw base::BadInput("answer: is empty; give the text that is right, or remove the row");
    }
}

double judgeExact(const nlohmann::json& expected, std::string_view answer) {
    return trimmedText(expectedText(expected)) == trimmedText(answer) ? 1 : 0;
}

} // namespace

const Checker& exactChecker() {
    static const Checker kChecker = {"exact", "the text of the answer, without white space around it",
                                     requireExactAnswer, judgeExact};
    return kChecker;
}

} // namespace vitrine::engine
