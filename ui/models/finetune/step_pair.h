// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A recorded training step of run A and, if there is one, of its baseline B, with the map of their times. Immutable;
// made on any thread.

#include <QString>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/trace.h"
#include "profiler/analysis/phase_map.h"
#include "profiler/analysis/step_anatomy.h"
#include "ui/models/common/axis_map.h"
#include "ui/models/common/stack_model.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

struct StepSide {
    TimelinePtr timeline;
    profiler::StepAnatomy anatomy;
    base::TrainingStepEvent values;      ///< loss, gradient norm, tokens
    std::optional<std::uint64_t> budget; ///< of the device at that time

    base::TimeNs length() const { return anatomy.length(); }
};

struct StepPair {
    StepSide a;
    std::optional<StepSide> b;
    profiler::PhaseMap phases;

    /// The upper end of a scale for both: the higher peak.
    std::uint64_t top() const;
};
using StepPairPtr = std::shared_ptr<const StepPair>;

/// The step of run A, and of B the one with the same number, or else the nearest one. Null where the layers of A's step
/// were not recorded. `b` may be null.
StepPairPtr stepPair(const TimelinePtr& a, std::int64_t step, const TimelinePtr& b);

/// Steps to offer: the first three, the newest, the one with the highest peak, and others evenly between them, at most
/// `most`.
std::vector<std::int64_t> offeredSteps(const profiler::RunTimeline& timeline, std::size_t most = 40);
/// The step with the highest peak, the first of equal ones; nothing without steps.
std::optional<std::int64_t> highestStep(const profiler::RunTimeline& timeline);

/// Memory of a side by category, on an axis that counts from the begin of A's step. `phases` maps it to the side's own
/// time; null: the side is A, or both run from 0.
StackModelPtr stepStack(const StepSide& side, const profiler::PhaseMap* phases, const AxisMap& axis, int columns);

/// The peak of a side with its place on the axis of A's step, as stepStack() draws it; nothing where no memory was
/// recorded.
std::optional<profiler::MemoryColumn> stepPeak(const StepSide& side, const profiler::PhaseMap* phases);

/// The first range that the detail shows, counted from the begin of the step: the last chunks of the loss and the first
/// three layers of the backward pass.
TimeRange firstDetail(const profiler::StepAnatomy& step);
/// The range around the peak: the item that has it with its neighbours.
TimeRange detailAroundPeak(const profiler::StepAnatomy& step);

} // namespace vitrine::ui
