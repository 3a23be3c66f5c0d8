// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "Write the closing brackets that are missing in ( [ { } . " The answer's brackets count, whatever stands between
// them: those that are missing, or the whole sequence with them. 1: they are right; else at most 0.2, by the share of
// missing brackets that the answer begins with.

#include <algorithm>
#include <array>
#include <cstddef>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/rl/problems/task_list.h"

namespace vitrine::engine {

namespace {

constexpr double kForTheBeginning = 0.2;
constexpr std::string_view kOpening = "([{<";
constexpr std::string_view kClosing = ")]}>";

struct BracketsLevel {
    std::int64_t length;  ///< of the question's sequence, at most
    std::int64_t missing; ///< brackets, at most
    std::int64_t kinds;
};
constexpr std::array<BracketsLevel, 10> kBracketsLevels = {{{5, 1, 3},
                                                            {6, 2, 3},
                                                            {6, 3, 3},
                                                            {8, 4, 3},
                                                            {12, 5, 3},
                                                            {16, 6, 4},
                                                            {20, 8, 4},
                                                            {28, 10, 4},
                                                            {36, 14, 4},
                                                            {48, 20, 4}}};

char closingOf(char opening) {
    return kClosing.at(kOpening.find(opening));
}

/// A walk that ends with `missing` brackets open, after `length` or one bracket fewer.
std::string drawnSequence(const BracketsLevel& level, std::int64_t missing, ProblemDraws& draws, std::string& open) {
    std::string sequence;
    const std::int64_t length = level.length - (level.length - missing) % 2;
    for (std::int64_t left = length; left > 0; --left) {
        const auto depth = static_cast<std::int64_t>(open.size());
        const bool mustOpen = depth == 0 || missing - depth == left;
        const bool mustClose = depth - missing == left;
        if (mustOpen || (!mustClose && draws.between(0, 1) == 0)) {
            open += kOpening.at(static_cast<std::size_t>(draws.between(0, level.kinds - 1)));
            sequence += open.back();
        } else {
            sequence += closingOf(open.back());
            open.pop_back();
        }
    }
    return sequence;
}

TaskProblem makeBrackets(std::int64_t difficulty, ProblemDraws& draws) {
    const BracketsLevel& level = kBracketsLevels.at(static_cast<std::size_t>(difficulty - 1));
    const std::int64_t missing = draws.between((level.missing + 1) / 2, level.missing);
    std::string open;
    const std::string sequence = drawnSequence(level, missing, draws, open);
    std::string answer;
    std::transform(open.rbegin(), open.rend(), std::back_inserter(answer), closingOf);
    return {
        fmt::format("Which closing brackets are missing at the end of {} ? Answer with these brackets only.", sequence),
        std::make_shared<const nlohmann::json>(nlohmann::json{{"sequence", sequence}, {"answer", answer}})};
}

double checkBrackets(const nlohmann::json& facts, std::string_view answer) {
    std::string given;
    std::copy_if(answer.begin(), answer.end(), std::back_inserter(given), [](char c) {
        return kOpening.find(c) != std::string_view::npos || kClosing.find(c) != std::string_view::npos;
    });
    const auto& sequence = facts.at("sequence").get_ref<const std::string&>();
    const auto& missing = facts.at("answer").get_ref<const std::string&>();
    const std::string_view completion =
        std::string_view(given).substr(given.starts_with(sequence) ? sequence.size() : 0);
    if (completion == missing) {
        return 1;
    }
    const auto right = std::mismatch(missing.begin(), missing.end(), completion.begin(), completion.end()).first;
    const auto share = static_cast<double>(right - missing.begin()) / static_cast<double>(missing.size());
    return kForTheBeginning * share;
}

} // namespace

const Task& bracketsTask() {
    static const Task kTask = {"brackets", "Closing brackets that are missing", kBracketsLevels.size(), makeBrackets,
                               checkBrackets};
    return kTask;
}

} // namespace vitrine::engine
