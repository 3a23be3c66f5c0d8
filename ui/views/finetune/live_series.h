// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The series of a run that goes on, as lanes paint them: each new step costs the columns at the end and no others.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "ui/models/common/plot_columns.h"
#include "ui/models/finetune/training_columns.h"
#include "ui/widgets/timeline/series_lane.h"

namespace vitrine::ui {

class LiveSeries {
public:
    using Series = const PlotSeries& (TrainingRun::*)() const;

    /// What is known of the series so far is used again if the run goes on from what was shown.
    void setRun(sessions::RunId id, double smoothing, TrainingRunPtr run, const PlotFrame& frame, const AxisMap& axis);
    /// Up to this place all series are what they were before setRun(); nothing: none of them need be.
    std::optional<base::TimeNs> same() const { return same_; }

    LaneSeries lane(const QString& name, Series series, LaneSeries::Mark mark,
                    std::function<QColor(const ThemeTokens&)> color);
    /// The samples of the whole run for the strip over the lanes.
    std::vector<PlotSample> overview(Series series, const AxisMap& axis, int columns);
    StackModelPtr memory(const TrainingRun& run, const profiler::RunTimeline& timeline, const AxisMap& axis,
                         int columns);
    /// Samples and columns of memory that were made so far.
    std::uint64_t made() const;

private:
    struct Kept {
        Series series = nullptr;
        bool overview = false;
        std::shared_ptr<PlotColumns> columns = std::make_shared<PlotColumns>();
    };
    std::shared_ptr<PlotColumns> kept(Series series, bool overview);
    std::optional<base::TimeNs> goesOn(const TrainingRun& before, const PlotFrame& frame, const AxisMap& axis) const;

    sessions::RunId id_ = 0;
    double smoothing_ = 0;
    TrainingRunPtr run_;
    std::optional<base::TimeNs> same_;
    std::vector<Kept> kept_;
    TrainingColumns memory_;
};

} // namespace vitrine::ui
