// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/stack_model.h"

#include <QObject>
#include <algorithm>
#include <numeric>

#include "kernels/core/dtype.h"
#include "profiler/analysis/memory_groups.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using profiler::GroupBy;

namespace {

std::uint64_t sum(const base::CategoryBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

bool inside(const profiler::RunTimeline& timeline, base::TimeNs time) {
    return time >= timeline.begin() && time <= std::max(timeline.end(), timeline.begin() + kShortestShown);
}

} // namespace

std::uint64_t StackModel::largestTotal() const {
    std::uint64_t largest = 0;
    for (const StackColumn& column : columns) {
        largest = std::max(largest, column.total);
    }
    return largest;
}

StackModelPtr categoryStack(const profiler::RunTimeline& timeline, const AxisMap& axis, int columns) {
    auto model = std::make_shared<StackModel>();
    for (int i = 0; i < base::kCategoryCount; ++i) {
        model->layers.push_back({textOf(base::categoryName(static_cast<base::MemoryCategory>(i))), i, 0});
    }
    const auto answers = axis.columns(timeline, columns);
    model->columns.resize(answers.size());
    model->values.reserve(answers.size() * model->layers.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const profiler::MemoryColumn& answer = answers[i];
        const double middle = (static_cast<double>(i) + 0.5) / static_cast<double>(answers.size()) * axis.width();
        StackColumn& column = model->columns[i];
        column.present = answer.events > 0 || inside(timeline, axis.time(middle));
        column.total = column.present ? sum(answer.atMax) : 0;
        column.time = answer.maxTime;
        for (const std::uint64_t bytes : answer.atMax) {
            model->values.push_back(column.present ? bytes : 0);
        }
    }
    return model;
}

StackModelPtr groupedStack(const profiler::RunTimeline& timeline, const AxisMap& axis, int columns, GroupBy groupBy,
                           std::size_t limit) {
    if (groupBy == GroupBy::Category) {
        return categoryStack(timeline, axis, columns);
    }
    const StackModelPtr base = categoryStack(timeline, axis, columns);
    std::vector<base::TimeNs> times;
    times.reserve(base->columns.size());
    for (const StackColumn& column : base->columns) {
        times.push_back(times.empty() ? column.time : std::max(times.back(), column.time));
    }
    profiler::Grouping grouping(timeline, groupBy);
    std::vector<std::vector<std::int64_t>> change; // [group][column + 1]
    for (const profiler::AllocationRow row : timeline.memory().allocations()) {
        if (row.space != base::MemorySpace::Device || times.empty() || row.born > times.back()) {
            continue;
        }
        const auto from = std::lower_bound(times.begin(), times.end(), row.born) - times.begin();
        const auto to = row.freed < 0 ? static_cast<std::ptrdiff_t>(times.size())
                                      : std::lower_bound(times.begin(), times.end(), row.freed) - times.begin();
        if (from >= to) {
            continue;
        }
        const std::size_t group = grouping.groupOf(row);
        if (group >= change.size()) {
            change.resize(group + 1, std::vector<std::int64_t>(times.size() + 1));
        }
        change[group][static_cast<std::size_t>(from)] += static_cast<std::int64_t>(row.bytes);
        change[group][static_cast<std::size_t>(to)] -= static_cast<std::int64_t>(row.bytes);
    }
    std::vector<std::pair<std::int64_t, std::size_t>> order; // largest peak first
    for (std::size_t group = 0; group < change.size(); ++group) {
        std::int64_t running = 0, largest = 0;
        for (std::size_t i = 0; i + 1 < change[group].size(); ++i) {
            running += change[group][i];
            change[group][i] = running;
            largest = std::max(largest, running);
        }
        order.emplace_back(-largest, group);
    }
    std::sort(order.begin(), order.end());
    const std::size_t shown = std::min(limit, order.size());
    auto model = std::make_shared<StackModel>();
    model->columns = base->columns;
    for (std::size_t i = 0; i < shown; ++i) {
        model->layers.push_back({textOf(grouping.name(order[i].second)), -1, static_cast<int>(i)});
    }
    model->layers.push_back({QObject::tr("the rest"), static_cast<int>(base::MemoryCategory::Other), 0});
    model->values.assign(model->columns.size() * model->layers.size(), 0);
    for (std::size_t column = 0; column < model->columns.size(); ++column) {
        std::uint64_t named = 0;
        for (std::size_t i = 0; i < shown; ++i) {
            const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, change[order[i].second][column]));
            model->values[column * model->layers.size() + i] = bytes;
            named += bytes;
        }
        // Whatever has no row of its own (untracked bytes, small groups) closes the stack to the exact total.
        const std::uint64_t total = base->columns[column].total;
        model->values[column * model->layers.size() + shown] = total > named ? total - named : 0;
    }
    return model;
}

QString dtypeText(std::uint8_t dtype) {
    return textOf(kernels::dtypeName(static_cast<kernels::DType>(dtype)));
}

} // namespace vitrine::ui
