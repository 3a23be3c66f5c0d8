// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/finetune/live_series.h"

#include <algorithm>
#include <utility>

namespace vitrine::ui {

void LiveSeries::setRun(sessions::RunId id, double smoothing, TrainingRunPtr run, const PlotFrame& frame,
                        const AxisMap& axis) {
    const TrainingRunPtr before = std::exchange(run_, std::move(run));
    const bool other = id != id_ || smoothing != smoothing_;
    id_ = id;
    smoothing_ = smoothing;
    if (other || before == nullptr || before->empty() || run_->firstStep() != before->firstStep() ||
        run_->lastStep() < before->lastStep()) {
        same_.reset();
        for (Kept& kept : kept_) {
            kept.columns->forget();
        }
        memory_.forget();
        return;
    }
    same_ = goesOn(*before, frame, axis);
}

std::optional<base::TimeNs> LiveSeries::goesOn(const TrainingRun& before, const PlotFrame& frame,
                                               const AxisMap& axis) const {
    // Once steps begin to share columns, all of them stand elsewhere. An evaluation may be of an earlier step.
    const auto shared = [&](const TrainingRun& run) { return run.loss().sight(axis, frame.columns()).shared; };
    // Codes are counted after their step: the one that was the last may have its value only now.
    const bool late = !run_->codesChanged().empty() && before.codesChanged().size() < before.steps().size();
    if (late || shared(before) != shared(*run_) || before.evaluations().size() != run_->evaluations().size()) {
        return std::nullopt;
    }
    return before.lastStep() * kStepLength;
}

std::shared_ptr<PlotColumns> LiveSeries::kept(Series series, bool overview) {
    const auto found = std::ranges::find_if(
        kept_, [&](const Kept& kept) { return kept.series == series && kept.overview == overview; });
    return found != kept_.end() ? found->columns : kept_.emplace_back(Kept{series, overview}).columns;
}

LaneSeries LiveSeries::lane(const QString& name, Series series, LaneSeries::Mark mark,
                            std::function<QColor(const ThemeTokens&)> color) {
    return {name,
            [run = run_, series, columns = kept(series, false)](const AxisMap& axis, int count) {
                return columns->samples(((*run).*series)(), axis, count);
            },
            std::move(color), mark};
}

std::vector<PlotSample> LiveSeries::overview(Series series, const AxisMap& axis, int columns) {
    return kept(series, true)->samples(((*run_).*series)(), axis, columns);
}

StackModelPtr LiveSeries::memory(const TrainingRun& run, const profiler::RunTimeline& timeline, const AxisMap& axis,
                                 int columns) {
    return memory_.stack(run, timeline, axis, columns);
}

std::uint64_t LiveSeries::made() const {
    std::uint64_t made = memory_.asked();
    for (const Kept& kept : kept_) {
        made += kept.columns->made();
    }
    return made;
}

} // namespace vitrine::ui
