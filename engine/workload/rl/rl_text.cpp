// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/rl/rl_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/count_text.h"
#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/results.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kShownSteps = 12;
constexpr std::size_t kShownAnswers = 2;

/// A list of the result, or one of its members: its number of a step; a dash where there is none.
std::string numberAt(const Json& list, std::size_t step, const char* format) {
    if (!list.is_array() || step >= list.size() || !list[step].is_number()) {
        return "–";
    }
    return fmt::format(fmt::runtime(format), list[step].get<double>());
}

const Json& fieldOf(const Json& metrics, std::string_view key) {
    static const Json kNone;
    const auto found = metrics.find(std::string(key));
    return found == metrics.end() ? kNone : *found;
}

/// Steps that the table has: the first, the last and some between, evenly.
std::set<std::size_t> shownSteps(std::size_t steps) {
    std::set<std::size_t> out;
    const std::size_t rows = std::min(steps, kShownSteps);
    for (std::size_t row = 0; row < rows; ++row) {
        out.insert(rows == 1 ? 0 : row * (steps - 1) / (rows - 1));
    }
    return out;
}

std::size_t stepsIn(const Json& metrics) {
    const Json& rewards = fieldOf(metrics, result::kRewards.key);
    return rewards.is_array() ? rewards.size() : 0;
}

std::string evaluations(const Json& metrics) {
    const Json& rewards = fieldOf(metrics, result::kEvalRewards.key);
    const Json& at = fieldOf(metrics, result::kRlEvalSteps.key);
    if (!rewards.is_array() || rewards.empty() || !at.is_array() || at.size() != rewards.size()) {
        return {};
    }
    std::string out = "evaluation:";
    for (const std::size_t index : shownSteps(rewards.size())) {
        out += fmt::format(" {} after step {}{}", numberAt(rewards, index, "{:.3f}"), at[index].dump(),
                           index + 1 == rewards.size() ? "" : ",");
    }
    return out;
}

double sumOf(const Json& list) {
    double sum = 0;
    for (const Json& value : list.is_array() ? list : Json::array()) {
        sum += value.is_number() ? value.get<double>() : 0;
    }
    return sum;
}

/// "rollout 12.3 s, update 4.5 s": the phases that took time.
std::string phases(const Json& metrics) {
    std::string out;
    for (const auto& [phase, seconds] : fieldOf(metrics, result::kPhaseSeconds.key).items()) {
        if (const double sum = sumOf(seconds); sum >= 0.01) {
            out += fmt::format("{}{} {:.2f} s", out.empty() ? "time: " : ", ", phase, sum);
        }
    }
    return out;
}

std::string peaks(const Json& metrics) {
    std::string out;
    for (const auto& [role, bytes] : fieldOf(metrics, result::kPeakByRole.key).items()) {
        double most = 0;
        for (const Json& value : bytes) {
            most = std::max(most, value.is_number() ? value.get<double>() : 0);
        }
        if (most == 0) {
            continue; // no step trained
        }
        out += fmt::format("{}{} {}", out.empty() ? "peak memory: " : ", ", role,
                           base::formatBytes(static_cast<std::uint64_t>(most)));
    }
    return out;
}

/// The last ones that the result has.
std::string answers(const Json& metrics) {
    const Json& rows = fieldOf(metrics, result::kSampledAnswers.key);
    if (!rows.is_array() || rows.empty()) {
        return {};
    }
    std::string out = fmt::format("\nafter step {}: {}\n", rows.back().value("step", std::int64_t{0}),
                                  base::textAt(rows.back(), "prompt"));
    std::size_t shown = 0;
    for (auto row = rows.rbegin(); row != rows.rend() && shown < kShownAnswers; ++row, ++shown) {
        const Json& reward = fieldOf(*row, "reward");
        out += fmt::format("  {}  {}\n", reward.is_number() ? fmt::format("{:.2f}", reward.get<double>()) : "–",
                           base::textAt(*row, "text"));
    }
    return out;
}

} // namespace

std::vector<std::string> rlFacts(const Json& metrics) {
    std::vector<std::string> out;
    if (const std::size_t steps = stepsIn(metrics); steps > 0) {
        out = {fmt::format("{}, judged by {}, sampled with {} weights",
                           base::countText(static_cast<std::int64_t>(steps), "step"),
                           base::textAt(metrics, "reward_source"), base::textAt(metrics, "rollout_weights")),
               evaluations(metrics), phases(metrics), peaks(metrics)};
        std::erase_if(out, [](const std::string& line) { return line.empty(); });
    }
    return out;
}

std::vector<std::vector<std::string>> rlStepRows(const Json& metrics) {
    std::vector<std::vector<std::string>> rows = {
        {"step", "reward", "answer tokens", "loss", "entropy", "|difference|", "sampled tok/s", "seconds"}};
    for (const std::size_t step : shownSteps(stepsIn(metrics))) {
        rows.push_back({std::to_string(step + 1), numberAt(fieldOf(metrics, result::kRewards.key), step, "{:.3f}"),
                        numberAt(fieldOf(metrics, result::kAnswerTokens.key), step, "{:.1f}"),
                        numberAt(fieldOf(metrics, result::kLosses.key), step, "{:.4f}"),
                        numberAt(fieldOf(metrics, result::kEntropy.key), step, "{:.3f}"),
                        numberAt(fieldOf(metrics, result::kLogprobAbsDiff.key), step, "{:.1e}"),
                        numberAt(fieldOf(metrics, result::kRolloutRates.key), step, "{:.0f}"),
                        numberAt(fieldOf(metrics, result::kStepSeconds.key), step, "{:.2f}")});
    }
    return rows;
}

std::optional<std::string> rlText(const Experiment& experiment, const Json& metrics) {
    if (experiment.isPlan() || stepsIn(metrics) == 0) {
        return std::nullopt;
    }
    std::string out;
    for (const std::string& line : rlFacts(metrics)) {
        out += line + "\n";
    }
    return out + "\n" + tableText(rlStepRows(metrics)) + answers(metrics);
}

} // namespace vitrine::engine
