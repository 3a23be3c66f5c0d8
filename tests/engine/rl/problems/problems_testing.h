// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tasks and checkers under test.

#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/rl/problems/checker.h"
#include "engine/rl/problems/task.h"

namespace vitrine::engine::test {

/// Problems of all difficulties of a task.
inline void forDrawnProblems(const Task& task, std::uint64_t each,
                             const std::function<void(std::int64_t difficulty, const TaskProblem& problem)>& take) {
    for (std::int64_t difficulty = 1; difficulty <= task.mostDifficulty; ++difficulty) {
        for (std::uint64_t number = 0; number < each; ++number) {
            ProblemDraws draws(7, 1, number);
            take(difficulty, task.make(difficulty, draws));
        }
    }
}

inline double rewardOf(std::string_view task, const nlohmann::json& facts, std::string_view answer) {
    return findTask(task)->check(facts, answer);
}

inline double judged(std::string_view checker, const nlohmann::json& expected, std::string_view answer) {
    findChecker(checker)->requireAnswer(expected);
    return findChecker(checker)->judge(expected, answer);
}

/// Why a row's answer is refused; empty: it is not.
inline std::string answerError(std::string_view checker, const nlohmann::json& answer) {
    try {
        findChecker(checker)->requireAnswer(answer);
    } catch (const base::BadInput& error) {
        return error.message();
    }
    return {};
}

/// Texts that no judge expects: long ones, broken ones, none.
inline std::vector<std::string> hostileAnswers() {
    constexpr std::size_t kMany = std::size_t{1} << 20;
    std::vector<std::string> out = {"", " ", std::string("\0", 1), std::string("\0 5 \0", 5), "\xFF\xFE", "\xC3", "\\"};
    for (const std::string_view part :
         {"{",  "}",        "(",      ",", "1",           "1,",           "-",  ".",  "0.",   "\\boxed{", "\\boxed{}",
          "\\", "Answer: ", "answer", "/", "\\frac{",     "\\frac{1}{2}", "a ", "1/", "\xFF", "####",     "1e",
          "\n", "\\text{",  "(B)",    "=", "\xE2\x88\x92"}) {
        std::string& text = out.emplace_back();
        while (text.size() < kMany) {
            text += part;
        }
    }
    return out;
}

} // namespace vitrine::engine::test
