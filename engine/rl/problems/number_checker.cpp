// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The last number of the answer is the expected one. Percent signs and units do not count. The expected number is the
// last one of its text, so GSM8K's solutions that end with "#### 42" can be given as they are.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "engine/rl/problems/answer_number.h"
#include "engine/rl/problems/checker_list.h"
#include "engine/tokenizer/json_field.h"

namespace vitrine::engine {

namespace {

constexpr double kTolerance = 1e-6; ///< relative

void requireNumber(const nlohmann::json& answer) {
    const std::string text = expectedText(answer);
    if (!lastNumber(behindHashes(text))) {
        throw base::BadInput(
            fmt::format("answer: there is no number in {}; choose another checker", quotedForMessage(text)));
    }
}

double judgeNumber(const nlohmann::json& expected, std::string_view answer) {
    const std::string text = expectedText(expected);
    const std::optional<double> right = lastNumber(behindHashes(text));
    const std::optional<double> given = lastNumber(answer);
    if (!right || !given) {
        return 0;
    }
    return std::abs(*right - *given) <= kTolerance * std::max(std::abs(*right), std::abs(*given)) ? 1 : 0;
}

} // namespace

const Checker& numberChecker() {
    static const Checker kChecker = {"number", "the last number of the answer", requireNumber, judgeNumber};
    return kChecker;
}

} // namespace vitrine::engine
