// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The runs of a sweep beside each other, compared at the same step only. The command line, the page and every export
// ask here. Pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/workload/sweep/run_queue.h"

namespace vitrine::engine {

struct SweepRow {
    std::int64_t number = 0, run = 0;
    QueueState state = QueueState::Waiting;
    SweepValues values;
    /// The newest evaluation; of an ended run without evaluations its last loss or reward. Nothing for a run that has
    /// neither.
    std::optional<double> value;
    std::int64_t valueStep = 0;       ///< of `value`
    std::optional<double> behindBest; ///< 0: it is the best; nothing: no other run is comparable
    std::int64_t steps = 0;           ///< that were made
    bool best = false;                ///< of the runs that are done
};

struct SweepTable {
    std::vector<SweepRow> rows; ///< best first among done, then running, ended otherwise, waiting
    bool evaluated = false;     ///< values are those of evaluations, not of steps
    bool rewards = false;       ///< values are rewards, and higher is better; else losses
    std::size_t done = 0, running = 0, waiting = 0, ended = 0, heldBack = 0;

    const SweepRow* bestRow() const; ///< null: none is done
    /// "evaluation loss", "reward": what the values are.
    std::string_view measure() const;
    /// By how much the next run that is done at the same step is worse than the best; nothing without one.
    std::optional<double> toTheNext() const;
};

SweepTable sweepTable(const RunQueue& queue, std::string_view sweep);

/// "lr 2e-4 with rank 16 is best so far: evaluation loss 1.412 after 400 steps, 0.031 below the next." Empty where the
/// sweep has no runs.
std::string sweepSentence(const RunQueue& queue, std::string_view sweep);

} // namespace vitrine::engine
