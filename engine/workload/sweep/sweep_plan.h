// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A sweep: one experiment, run once for each combination of values of some of its options. Pure functions and values.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/workload/experiment/experiment.h"

namespace vitrine::engine {

/// An option that varies, with its values as texts of the command line, in the order in which they were given.
struct SweepOption {
    std::string key; ///< of the option table, "lr"
    std::vector<std::string> values;

    bool operator==(const SweepOption& other) const = default;
};

/// The order in which runs of a sweep wait. From the middle out: runs whose values lie in the middle of their lists
/// come first, because the best values are most often there.
enum class SweepOrder : std::uint8_t { AsGiven, FromTheMiddleOut };
std::string_view sweepOrderName(SweepOrder order); ///< "as-given", "middle-out"
std::optional<SweepOrder> sweepOrderByName(std::string_view name);

/// A run whose evaluation loss is more than `above` over the best of its sweep at the same step is ended, but not
/// before step `from`. Of runs that earn rewards, one whose evaluation reward is more than that below the best.
struct StopRule {
    double above = 0;
    std::int64_t from = 0;

    bool operator==(const StopRule& other) const = default;
};
/// "above=0.1,from=150"; `from` may be left out. Throws BadInput "--stop-rule: what".
StopRule parseStopRule(std::string_view text);
/// "above=0.1,from=150"
std::string stopRuleText(const StopRule& rule);

/// The value of each option that varies, in the order of the options.
using SweepValues = std::vector<std::pair<std::string, std::string>>;
/// "lr 2e-4, rank 16"
std::string sweepRunName(const SweepValues& values);

struct SweepRun {
    SweepValues values;
    Experiment experiment;
};

struct SweepPlan {
    std::string name;
    std::string base; ///< the experiment without the values that vary, JSON
    std::vector<SweepOption> options;
    SweepOrder order = SweepOrder::AsGiven;
    std::optional<StopRule> rule;

    bool operator==(const SweepPlan& other) const = default;
};

/// The most runs that a sweep may have.
inline constexpr std::size_t kMostSweepRuns = 1000;

/// Values as people write them: "8,16,32" or a row of numbers "1e-5..4e-4 x2" (each twice the one before; also "+8").
/// Each is checked by the option, and none may come twice. Throws BadInput "KEY: what".
std::vector<std::string> parseSweepValues(const std::string& key, std::string_view text);
/// "lr=1e-4,2e-4" of --vary. Throws BadInput "--vary: what".
SweepOption parseSweepOption(const Workload& workload, std::string_view text);

/// The values of every run, in the order of the plan.
std::vector<SweepValues> sweepCombinations(const SweepPlan& plan);
/// The experiment with these values, checked. What it writes lies apart from what the other runs write: a folder below
/// the one that the experiment names, or a file with the values in its name. Throws BadInput.
Experiment sweepExperiment(const SweepPlan& plan, const SweepValues& values);
/// All runs in the order of the plan. Throws BadInput for a value that the experiment does not take and for more than
/// kMostSweepRuns.
std::vector<SweepRun> sweepRuns(const SweepPlan& plan);

/// The plan as a JSON object, and back. Nothing for what is no plan.
nlohmann::json sweepPlanJson(const SweepPlan& plan);
std::optional<SweepPlan> readSweepPlan(const nlohmann::json& value);

} // namespace vitrine::engine
