// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "What is 12 + 7 + 30?" The answer's last number counts. 1: it is the sum; 0.1: it is another number; 0: there is
// none.

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/rl/problems/answer_number.h"
#include "engine/rl/problems/task_list.h"

namespace vitrine::engine {

namespace {

constexpr double kForAnyNumber = 0.1;
constexpr std::int64_t kSmallSums = 1; ///< at this difficulty sums have one digit

struct SumsLevel {
    std::int64_t terms;
    std::int64_t largest; ///< term
};
constexpr std::array<SumsLevel, 10> kSumsLevels = {
    {{2, 9}, {2, 9}, {3, 9}, {2, 99}, {3, 99}, {4, 99}, {4, 999}, {5, 999}, {6, 9999}, {8, 99999}}};

TaskProblem makeSum(std::int64_t difficulty, ProblemDraws& draws) {
    const SumsLevel& level = kSumsLevels.at(static_cast<std::size_t>(difficulty - 1));
    std::string terms;
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < level.terms; ++i) {
        const std::int64_t term = draws.between(0, difficulty == kSmallSums ? level.largest - sum : level.largest);
        terms += fmt::format("{}{}", i == 0 ? "" : " + ", term);
        sum += term;
    }
    const char* const how = level.terms == 2 ? "Answer with the number." : "Add step by step and end with the sum.";
    return {fmt::format("What is {}? {}", terms, how),
            std::make_shared<const nlohmann::json>(nlohmann::json{{"answer", sum}})};
}

double checkSum(const nlohmann::json& facts, std::string_view answer) {
    const std::optional<double> number = lastNumber(answer);
    if (!number) {
        return 0;
    }
    return *number == facts.at("answer").get<double>() ? 1 : kForAnyNumber;
}

} // namespace

const Task& sumsTask() {
    static const Task kTask = {"sums", "Sums with their steps", kSumsLevels.size(), makeSum, checkSum};
    return kTask;
}

} // namespace vitrine::engine
