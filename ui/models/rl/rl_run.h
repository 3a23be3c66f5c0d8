// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a run of reinforcement learning reported, step by step: its numbers, when each step was, its evaluations.
// Immutable; made on any thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/rl/rl_numbers.h"
#include "sessions/run_info.h"
#include "ui/models/common/plot_series.h"
#include "ui/models/common/time_cursor.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// What the steps of runs are laid out over.
enum class RlAxis : std::uint8_t { Steps, Time, Tokens };

/// A sampled token on the axis of tokens.
inline constexpr base::TimeNs kSampledTokenLength = 1000;

struct RlEvaluation {
    std::int64_t step = 0; ///< after it; 0: before the first one
    double reward = 0;     ///< mean
    base::TimeNs time = 0; ///< when it ended
};

/// What every step of the run asks for.
struct RlDemand {
    std::int64_t prompts = 0, samples = 0; ///< groups, and answers of each; 0: the answers were given
    std::int64_t longest = 0;              ///< tokens of an answer at most
    std::int64_t updates = 1;
    std::int64_t evalEvery = 0, evalProblems = 0;

    std::int64_t answers() const { return prompts * samples; }
};

class RlRun {
public:
    /// The steps come from the counters of the timeline; of a run without them (profile off), from the lists of its
    /// results, where steps follow each other without a pause.
    static std::shared_ptr<const RlRun> make(const sessions::RunInfo& run, const profiler::RunTimeline& timeline);

    bool empty() const { return steps_.empty(); }
    std::size_t size() const { return steps_.size(); }
    /// Its numbers; NaN where the step has no such number.
    const engine::RlStep& step(std::size_t index) const { return steps_[index]; }
    std::int64_t number(std::size_t index) const { return first_ + static_cast<std::int64_t>(index); }
    std::int64_t firstStep() const { return first_; }
    std::int64_t lastStep() const { return first_ + static_cast<std::int64_t>(size()) - 1; } ///< 0: there is none
    std::optional<std::size_t> indexOf(std::int64_t number) const;
    /// From its begin until its numbers were known; its evaluation follows. Known only of recorded steps.
    TimeRange times(std::size_t index) const { return times_[index]; }
    bool recorded() const { return recorded_; } ///< times are those of the run's events

    const std::vector<RlEvaluation>& evaluations() const { return evaluations_; } ///< by step
    /// The newest one up to a step.
    const RlEvaluation* evaluationAt(std::int64_t step) const;
    const RlEvaluation* bestEvaluation() const; ///< null: there is none
    std::optional<std::int64_t> totalSteps() const { return total_; }
    const RlDemand& demand() const { return demand_; }

    /// Where a step stands on an axis. Time and tokens count from the begin of the first step that is known.
    base::TimeNs place(std::size_t index, RlAxis axis) const;
    base::TimeNs placeOf(const RlEvaluation& evaluation, RlAxis axis) const;
    base::TimeNs end(RlAxis axis) const { return empty() ? 0 : place(size() - 1, axis); }
    /// The step that lies nearest to a place; nothing without steps.
    std::optional<std::size_t> stepAt(base::TimeNs place, RlAxis axis) const;

private:
    void takeDemand(const std::string& specJson);
    void takeCounters(const profiler::RunTimeline& timeline);
    void takeUpdates(const profiler::RunTimeline& timeline);
    void takeResults(const std::string& metricsJson);
    void takeEvaluations(const profiler::RunTimeline& timeline);
    void countTokens();

    std::vector<engine::RlStep> steps_;
    std::vector<TimeRange> times_;
    std::vector<std::int64_t> tokens_; ///< sampled up to the end of each step
    std::vector<RlEvaluation> evaluations_;
    RlDemand demand_;
    std::optional<std::int64_t> total_;
    std::int64_t first_ = 1;
    bool recorded_ = false;
};
using RlRunPtr = std::shared_ptr<const RlRun>;

/// Whether the run was started by the workload rl, and not as a plan.
bool isRlRun(const sessions::RunInfo& run);

} // namespace vitrine::ui
