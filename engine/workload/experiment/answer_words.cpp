// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/answer_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;
using Answer = std::vector<std::int64_t>;

Answer answerOf(const Json& row) {
    Answer ids;
    for (const Json& id : rowsOf(row, result::kIds)) {
        ids.push_back(id.is_number_integer() ? id.get<std::int64_t>() : -1);
    }
    return ids;
}

/// Of each prompt; empty where the run was planned.
std::vector<Answer> answersOf(const ComparedRun& run) {
    std::vector<Answer> answers;
    if (base::textIn(run.environment, "time_base") == "virtual") {
        return answers;
    }
    const Json metrics = base::parsedObject(run.metrics);
    for (const Json& row : rowsOf(metrics, result::kRequests)) {
        answers.push_back(answerOf(row));
    }
    if (answers.empty() && !rowsOf(metrics, result::kIds).empty()) {
        answers.push_back(answerOf(metrics));
    }
    return answers;
}

std::string tokensText(std::size_t count) {
    return count == 1 ? "1 token" : base::formatGrouped(static_cast<std::int64_t>(count)) + " tokens";
}

std::size_t sameTokens(const Answer& a, const Answer& b) {
    return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

std::string ofOne(const Answer& a, const Answer& b) {
    const std::size_t same = sameTokens(a, b);
    if (same == a.size() && same == b.size()) {
        return fmt::format("The answers are the same: {}.", tokensText(same));
    }
    const std::size_t shorter = std::min(a.size(), b.size());
    if (same == shorter) {
        const bool endsA = a.size() < b.size();
        return fmt::format("The answers are the same up to token {}, where that of {} ends; that of {} has {}.",
                           base::formatGrouped(static_cast<std::int64_t>(same)), endsA ? 'A' : 'B', endsA ? 'B' : 'A',
                           tokensText(std::max(a.size(), b.size())));
    }
    if (same == 0) {
        return "The answers differ from the first token on.";
    }
    return fmt::format("The answers differ from token {} on, of {}; before it they are the same.",
                       base::formatGrouped(static_cast<std::int64_t>(same) + 1),
                       base::formatGrouped(static_cast<std::int64_t>(std::max(a.size(), b.size()))));
}

} // namespace

std::string answerSentence(const ComparedRun& a, const ComparedRun& b) {
    const std::vector<Answer> left = answersOf(a), right = answersOf(b);
    if (left.empty() || left.size() != right.size()) {
        return {};
    }
    if (left.size() == 1) {
        return ofOne(left.front(), right.front());
    }
    std::size_t equal = 0, tokens = 0, first = left.size();
    for (std::size_t i = 0; i < left.size(); ++i) {
        equal += left[i] == right[i] ? 1 : 0;
        tokens += left[i].size();
        first = left[i] != right[i] && first == left.size() ? i : first;
    }
    if (equal == left.size()) {
        return fmt::format("All {} answers are the same: {}.", equal, tokensText(tokens));
    }
    return fmt::format("{} of {} answers are the same; the first that differs is answer {}, from token {} on.", equal,
                       left.size(), first + 1, sameTokens(left[first], right[first]) + 1);
}

} // namespace vitrine::engine
