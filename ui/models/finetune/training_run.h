// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a training run reported, step by step: losses, learning rate, gradient norm, codes that changed, speed,
// evaluations, checkpoints.
// Immutable; made on any thread. On its axis step k stands at k * kStepLength.

#include <QString>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "sessions/session_file.h"
#include "ui/models/common/plot_series.h"
#include "ui/models/common/time_cursor.h"
#include "ui/models/finetune/training_answers.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

struct TrainingCheckpoint {
    std::int64_t step = 0;
    bool kept = true;                  ///< false: a rule deleted it again
    bool newest = false, best = false; ///< of those that are kept; best by evaluation loss
    std::optional<double> evalLoss;    ///< of the newest evaluation up to its step
};

/// What is known of the steps to come.
struct TrainingRest {
    std::int64_t steps = 0;       ///< to go
    double stepSeconds = 0;       ///< median of the last 50
    std::int64_t evaluations = 0; ///< to come
    double evaluationSeconds = 0; ///< median
    std::int64_t answerSets = 0;  ///< to come
    double answerSeconds = 0;     ///< median
    double seconds = 0;           ///< of all that
};

class TrainingRun {
public:
    /// `smoothing`: the share of the smoothed loss that stays from step to step, 0 to below 1. The steps come from the
    /// timeline; of a run without them (profile off, earlier versions), from the lists of its results, where all steps
    /// have the same number of tokens and follow each other without a pause.
    static std::shared_ptr<const TrainingRun> make(const sessions::RunInfo& run, const profiler::RunTimeline& timeline,
                                                   double smoothing);

    bool empty() const { return steps_.empty(); }
    /// By step, each once. A run that failed may have values in its last one that are not finite.
    const std::vector<base::TrainingStepEvent>& steps() const { return steps_; }
    std::int64_t firstStep() const { return empty() ? 0 : steps_.front().step; }
    std::int64_t lastStep() const { return empty() ? 0 : steps_.back().step; }
    std::optional<std::int64_t> totalSteps() const { return total_; }
    std::optional<std::int64_t> resumedFrom() const { return resumed_; }
    /// The step after which the run went on from a checkpoint has values that are not finite.
    bool notFinite() const;

    const PlotSeries& loss() const { return loss_; }
    const PlotSeries& smoothed() const { return smoothed_; }
    const PlotSeries& evaluations() const { return evaluations_; }
    const PlotSeries& rate() const { return rate_; }
    const PlotSeries& norm() const { return norm_; }
    /// Shares of the weight codes that steps changed; empty without quantization-aware training. The newest step of a
    /// run that goes on may not have its value yet.
    const PlotSeries& codesChanged() const { return codes_; }
    std::optional<double> codesChanged(std::size_t step) const;                         ///< of an index of steps()
    const PlotSeries& speed() const { return speed_; }                                  ///< tokens per second
    const std::vector<TrainingCheckpoint>& checkpoints() const { return checkpoints_; } ///< by step

    /// How many of the latest checkpoints stay; 0: all.
    std::int64_t keptCheckpoints() const { return keep_; }

    /// The largest norm that is not clipped; nothing: no clipping.
    std::optional<double> clipNorm() const { return clip_; }
    std::int64_t clippedSteps() const { return clipped_; }
    /// Answers to fixed prompts.
    const TrainingAnswers& answers() const { return answers_; }
    /// The next step that is followed by answers; nothing where none is.
    std::optional<std::int64_t> nextAnswers() const;
    /// Median of the last 50 steps.
    double stepSeconds() const;
    /// Seconds since the first step began.
    double elapsedSeconds() const;
    std::int64_t tokens() const { return tokens_; } ///< of all steps
    /// Nothing before step 20, at the end of the run or where the number of steps is not known.
    std::optional<TrainingRest> rest() const;

    std::optional<std::uint64_t> trainedParameters() const { return trained_; }
    std::optional<std::uint64_t> modelParameters() const { return parameters_; }

    /// The step that lies nearest to a place of the axis, as an index of steps(); nothing without steps.
    std::optional<std::size_t> stepAt(base::TimeNs place) const;
    /// What steps shows between two places of the axis: from the begin of the first to the end of the last one.
    std::optional<TimeRange> timesOf(base::TimeNs begin, base::TimeNs end) const;
    /// Where an instant of the run lies on the axis of steps; nothing outside of its steps.
    std::optional<base::TimeNs> placeOf(base::TimeNs time) const;

private:
    void takeSteps(std::vector<base::TrainingStepEvent> steps, double smoothing);
    void takeMarks(const profiler::RunTimeline& timeline);
    void takeCodes(const profiler::RunTimeline& timeline);

    std::vector<base::TrainingStepEvent> steps_;
    std::vector<TrainingCheckpoint> checkpoints_;
    PlotSeries loss_, smoothed_, evaluations_, rate_, norm_, codes_, speed_;
    TrainingAnswers answers_;
    std::vector<double> evaluationSeconds_, answerSeconds_;
    std::optional<std::int64_t> total_, resumed_;
    std::optional<std::uint64_t> trained_, parameters_;
    std::optional<double> clip_;
    std::int64_t clipped_ = 0, tokens_ = 0, evalEvery_ = 0, sampleEvery_ = 0, keep_ = 0;
    bool asks_ = false; ///< it has fixed prompts
};
using TrainingRunPtr = std::shared_ptr<const TrainingRun>;

} // namespace vitrine::ui
