// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One recorded step of reinforcement learning: its phases, and the memory of both roles in it. Pure functions over an
// immutable timeline; any thread. Times are the run's; on the axis of a step, places count from its begin.

#include <QString>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ui/models/common/stack_model.h"
#include "ui/models/rl/rl_run.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

enum class RlPhaseKind : std::uint8_t { Rollout, LogProbs, Update };

struct RlPhase {
    RlPhaseKind kind = RlPhaseKind::Rollout;
    TimeRange range;
    std::int64_t number = 0; ///< of an update, from 1
    profiler::MemoryColumn peak;
};

/// A stretch in which the pool of pages is there.
struct RlPoolSpan {
    TimeRange range;
    std::uint64_t bytes = 0; ///< the most that it took
};

/// From an instant on, the share of the pool's pages that answers hold.
struct RlPoolUse {
    base::TimeNs time = 0;
    double share = 0;
};

/// A layer of a step's memory with its bytes.
struct RlStepPart {
    StackLayer layer;
    std::uint64_t bytes = 0;
};

struct RlStepMemory {
    TimelinePtr timeline;
    std::int64_t step = 0;
    TimeRange range;
    std::vector<RlPhase> phases; ///< by begin; none where scopes were not recorded
    std::vector<RlPoolSpan> pool;
    /// Copies of the weights that only rollouts compute with, and when they were there. 0: there are none.
    std::uint64_t rolloutWeights = 0;
    TimeRange rolloutWeightsAt;
    std::vector<RlPoolUse> use;  ///< of rollouts, by time; none where the sampler's steps were not recorded
    profiler::MemoryColumn peak; ///< maxTotal 0: no memory was recorded
    std::size_t peakPhase = 0;   ///< of `phases`
    std::optional<std::size_t> otherPeakPhase; ///< of the other role: the phase with its highest peak
    base::CategoryBytes largest{};             ///< of each category in the step
    std::vector<RlStepPart> most;              ///< the most that each layer takes, from bottom to top
    std::optional<std::uint64_t> budget;

    std::optional<std::int64_t> nearestWithMemory; ///< the step, where this one has none

    base::TimeNs length() const { return range.length(); }
    bool hasMemory() const { return peak.maxTotal > 0; }
    /// An instant at which the sampler sleeps and training has not begun; nothing where the phases are not known.
    std::optional<base::TimeNs> afterSleep() const;
    const RlPhase* phaseAt(base::TimeNs time) const;
    std::optional<double> poolUseAt(base::TimeNs time) const;
};
using RlStepMemoryPtr = std::shared_ptr<const RlStepMemory>;

/// Null for a run whose steps were not recorded.
RlStepMemoryPtr rlStepMemory(const TimelinePtr& timeline, const RlRun& run, std::size_t index);

/// "rollout", "log-probs", "update 1 of 2".
QString rlPhaseName(const RlPhase& phase, std::int64_t updates);

/// Memory by category over the step. The pool is two layers where it is known how much of it is in use, and so are
/// weights where rollouts have their own.
StackModelPtr rlStepStack(const RlStepMemory& step, const AxisMap& axis, int columns);

/// "optimizer 29.97 GiB, trainer weights 7.49 GiB": the largest layers at an instant of the run.
QString rlLargestText(const RlStepMemory& step, base::TimeNs at, std::size_t most);
/// "At the peak: optimizer 29.97 GiB, trainer weights 7.49 GiB. Asleep: 24.00 GiB given back, 45.29 GiB stayed: ...";
/// what is not known is not said.
QString rlHeldText(const RlStepMemory& step);
/// "30.0 MiB given back, 764 MiB stayed: optimizer 102 MiB" where the pool has given its memory to the trainer; empty:
/// it never did.
QString rlAsleepText(const RlStepMemory& step);
/// All layers from bottom to top at an instant of the run; without one, the most that each takes in the step.
std::vector<RlStepPart> rlStepParts(const RlStepMemory& step, std::optional<base::TimeNs> at);

} // namespace vitrine::ui
