// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/training_columns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

/// The column of the last step that was known, which may show new ones too; nothing: what is known cannot be used.
std::optional<std::size_t> TrainingColumns::firstNew(const TrainingRun& run, const AxisMap& axis,
                                                     std::size_t columns) const {
    if (model_ == nullptr || !complete_ || model_->columns.size() != columns || !(axis.range() == axis_.range()) ||
        axis.width() != axis_.width() || axis.kind() != axis_.kind() || run.lastStep() < lastStep_) {
        return std::nullopt;
    }
    // A step is shown half a step around its place.
    const double x = axis.x(lastStep_ * kStepLength - kStepLength / 2) / axis.width() * static_cast<double>(columns);
    return static_cast<std::size_t>(std::clamp(std::floor(x) - 1, 0.0, static_cast<double>(columns)));
}

StackModelPtr TrainingColumns::stack(const TrainingRun& run, const profiler::RunTimeline& timeline, const AxisMap& axis,
                                     int columns) {
    const auto count = static_cast<std::size_t>(std::max(columns, 0));
    const std::optional<std::size_t> first = firstNew(run, axis, count);
    if (first && run.lastStep() == lastStep_) {
        return model_;
    }
    auto model = first ? std::make_shared<StackModel>(*model_) : std::make_shared<StackModel>();
    for (int i = 0; !first && i < base::kCategoryCount; ++i) {
        model->layers.push_back({textOf(base::categoryName(static_cast<base::MemoryCategory>(i))), i, 0});
    }
    model->columns.resize(count);
    model->values.resize(count * model->layers.size(), 0);
    TimeRange shown;
    profiler::MemoryColumn peak;
    const double wide = axis.width() / static_cast<double>(std::max<std::size_t>(count, 1));
    for (std::size_t i = first.value_or(0); i < count; ++i) {
        const auto times =
            run.timesOf(axis.time(static_cast<double>(i) * wide), axis.time(static_cast<double>(i + 1) * wide));
        if (!times) {
            continue;
        }
        if (!(*times == shown)) { // neighbouring columns of a wide step show the same
            shown = *times;
            peak = timeline.memory().peak(shown.begin, shown.end);
            ++asked_;
        }
        StackColumn& column = model->columns[i];
        column.present = true;
        column.total = peak.maxTotal;
        column.time = peak.maxTime;
        std::ranges::copy(peak.atMax, model->values.begin() + static_cast<std::ptrdiff_t>(i * model->layers.size()));
    }
    axis_ = axis;
    lastStep_ = run.lastStep();
    complete_ = timeline.memory().complete();
    model_ = std::move(model);
    return model_;
}

} // namespace vitrine::ui
