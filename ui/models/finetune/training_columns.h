// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The memory of each step at its peak, by category, for a run that goes on: on the same axis only the columns of new
// steps are asked for, because the memory of a step that has ended does not change. One thread.

#include <cstdint>
#include <optional>

#include "ui/models/common/stack_model.h"
#include "ui/models/finetune/training_run.h"

namespace vitrine::ui {

class TrainingColumns {
public:
    /// In each column of the axis the step with the highest peak.
    StackModelPtr stack(const TrainingRun& run, const profiler::RunTimeline& timeline, const AxisMap& axis,
                        int columns);
    /// For another run.
    void forget() { model_.reset(); }
    /// Columns that the timeline was asked for so far.
    std::uint64_t asked() const { return asked_; }

private:
    std::optional<std::size_t> firstNew(const TrainingRun& run, const AxisMap& axis, std::size_t columns) const;

    StackModelPtr model_;
    AxisMap axis_;
    std::int64_t lastStep_ = 0;
    bool complete_ = false; ///< the timeline had all events up to there
    std::uint64_t asked_ = 0;
};

} // namespace vitrine::ui
