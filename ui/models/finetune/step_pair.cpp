// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/step_pair.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "profiler/analysis/memory_lookup.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using base::TimeNs;
using base::TrainingStepEvent;

constexpr std::size_t kDetailChunks = 5, kDetailLayers = 3;

std::span<const TrainingStepEvent> stepsOf(const profiler::RunTimeline& timeline) {
    return profiler::events<TrainingStepEvent>(timeline);
}

const TrainingStepEvent* nearestStep(const profiler::RunTimeline& timeline, std::int64_t step) {
    const TrainingStepEvent* best = nullptr;
    for (const TrainingStepEvent& each : stepsOf(timeline)) {
        if (best == nullptr || std::abs(each.step - step) < std::abs(best->step - step)) {
            best = &each;
        }
    }
    return best;
}

std::optional<StepSide> sideOf(const TimelinePtr& timeline, std::int64_t step) {
    const TrainingStepEvent* values = timeline ? nearestStep(*timeline, step) : nullptr;
    if (values == nullptr) {
        return std::nullopt;
    }
    StepSide side{timeline, profiler::stepAnatomy(*timeline, values->begin, values->end), *values, {}};
    if (side.anatomy.empty()) {
        return std::nullopt;
    }
    side.budget = profiler::budgetAt(*timeline, side.anatomy.begin);
    return side;
}

TimeRange inside(const profiler::StepAnatomy& step, TimeNs begin, TimeNs end) {
    return {std::max(begin, step.begin) - step.begin, std::min(end, step.end) - step.begin};
}

} // namespace

std::uint64_t StepPair::top() const {
    return std::max(a.anatomy.peak.maxTotal, b ? b->anatomy.peak.maxTotal : 0);
}

StepPairPtr stepPair(const TimelinePtr& a, std::int64_t step, const TimelinePtr& b) {
    auto side = sideOf(a, step);
    if (!side) {
        return nullptr;
    }
    auto pair = std::make_shared<StepPair>();
    pair->a = std::move(*side);
    pair->b = sideOf(b, pair->a.values.step);
    if (pair->b) {
        pair->phases = profiler::PhaseMap(pair->a.anatomy, pair->b->anatomy);
    }
    return pair;
}

std::optional<std::int64_t> highestStep(const profiler::RunTimeline& timeline) {
    const auto steps = stepsOf(timeline);
    if (steps.empty()) {
        return std::nullopt;
    }
    const profiler::MemoryColumn peak =
        timeline.memory().peak(steps.front().begin, std::max(steps.front().begin + 1, steps.back().end));
    const auto found = std::ranges::find_if(
        steps, [&](const TrainingStepEvent& step) { return step.begin <= peak.maxTime && peak.maxTime <= step.end; });
    return peak.maxTotal > 0 && found != steps.end() ? found->step : steps.front().step;
}

std::vector<std::int64_t> offeredSteps(const profiler::RunTimeline& timeline, std::size_t most) {
    const auto steps = stepsOf(timeline);
    if (steps.empty()) {
        return {};
    }
    std::set<std::int64_t> chosen;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, steps.size()); ++i) {
        chosen.insert(steps[i].step);
    }
    chosen.insert(steps.back().step);
    chosen.insert(*highestStep(timeline));
    const std::size_t more = most > chosen.size() ? most - chosen.size() : 0;
    for (std::size_t i = 1; i <= more; ++i) {
        chosen.insert(steps[i * (steps.size() - 1) / (more + 1)].step);
    }
    return {chosen.begin(), chosen.end()};
}

StackModelPtr stepStack(const StepSide& side, const profiler::PhaseMap* phases, const AxisMap& axis, int columns) {
    auto model = std::make_shared<StackModel>();
    for (int i = 0; i < base::kCategoryCount; ++i) {
        model->layers.push_back({textOf(base::categoryName(static_cast<base::MemoryCategory>(i))), i, 0});
    }
    const auto count = static_cast<std::size_t>(std::max(columns, 0));
    model->columns.resize(count);
    model->values.assign(count * model->layers.size(), 0);
    const auto timeAt = [&](std::size_t column) {
        const TimeNs at = axis.time(static_cast<double>(column) / static_cast<double>(count) * axis.width());
        return side.anatomy.begin + (phases != nullptr ? phases->timeInB(at) : at);
    };
    for (std::size_t i = 0; i < count; ++i) {
        const TimeNs begin = timeAt(i), end = std::max(timeAt(i + 1), begin + 1);
        if (begin >= side.anatomy.end || end <= side.anatomy.begin) {
            continue;
        }
        const profiler::MemoryColumn peak = side.timeline->memory().peak(begin, end);
        StackColumn& column = model->columns[i];
        column.present = true;
        column.total = profiler::totalBytes(peak.atMax);
        column.time = peak.maxTime;
        std::ranges::copy(peak.atMax, model->values.begin() + static_cast<std::ptrdiff_t>(i * model->layers.size()));
    }
    return model;
}

std::optional<profiler::MemoryColumn> stepPeak(const StepSide& side, const profiler::PhaseMap* phases) {
    profiler::MemoryColumn peak = side.anatomy.peak;
    if (peak.maxTotal == 0) {
        return std::nullopt;
    }
    peak.maxTime -= side.anatomy.begin;
    if (phases != nullptr) {
        peak.maxTime = phases->timeInA(peak.maxTime);
    }
    return peak;
}

TimeRange firstDetail(const profiler::StepAnatomy& step) {
    const auto backward = std::ranges::find(step.phases, profiler::TrainingPhase::Backward, &profiler::StepPhase::kind);
    if (backward == step.phases.end() || backward->items == 0) {
        return {0, step.length()};
    }
    TimeNs begin = backward->begin;
    if (backward != step.phases.begin() && (backward - 1)->items > 0) {
        const profiler::StepPhase& loss = *(backward - 1);
        begin = step.items[loss.firstItem + (loss.items > kDetailChunks ? loss.items - kDetailChunks : 0)].begin;
    }
    const std::size_t last = backward->firstItem + std::min(kDetailLayers, backward->items) - 1;
    return inside(step, begin, step.items[last].end);
}

TimeRange detailAroundPeak(const profiler::StepAnatomy& step) {
    const profiler::StepItem* item = step.itemAt(step.peak.maxTime);
    if (item == nullptr) {
        const profiler::StepPhase* phase = step.phaseAt(step.peak.maxTime);
        return phase != nullptr ? inside(step, phase->begin, phase->end) : TimeRange{0, step.length()};
    }
    const auto at = item - step.items.data();
    const auto last = static_cast<std::ptrdiff_t>(step.items.size()) - 1;
    return inside(step, step.items[static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, at - 1))].begin,
                  step.items[static_cast<std::size_t>(std::min(last, at + 1))].end);
}

} // namespace vitrine::ui
