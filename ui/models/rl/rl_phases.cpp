// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_phases.h"

#include <QObject>
#include <algorithm>
#include <span>

#include "profiler/analysis/memory_lookup.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_events.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using profiler::MemoryColumn;

constexpr std::size_t kKvCache = static_cast<std::size_t>(base::MemoryCategory::KvCache);
constexpr int kLookedAt = 2000; ///< pieces of a step whose categories are looked at

void addUpdates(const profiler::RunTimeline& timeline, TimeRange train, std::vector<RlPhase>& phases) {
    const std::span<const base::TrainingStepEvent> all = profiler::events<base::TrainingStepEvent>(timeline);
    auto update = std::ranges::lower_bound(all, train.begin, {}, &base::TrainingStepEvent::begin);
    base::TimeNs begin = train.begin;
    for (std::int64_t number = 1; update != all.end() && update->begin < train.end; ++update, ++number) {
        if (number == 1 && update->begin > begin) {
            phases.push_back({RlPhaseKind::LogProbs, {begin, update->begin}, 0, {}});
            begin = update->begin;
        }
        phases.push_back({RlPhaseKind::Update, {begin, update->end}, number, {}});
        begin = update->end;
    }
    if (!phases.empty() && phases.back().kind == RlPhaseKind::Update) {
        phases.back().range.end = train.end; // what is counted after the last one belongs to it
    }
}

std::vector<RlPhase> phasesIn(const profiler::RunTimeline& timeline, TimeRange step) {
    std::vector<RlPhase> out;
    const profiler::LazyRows<profiler::ScopeRow> rows = timeline.scopes().phases();
    std::size_t low = 0, high = rows.size();
    while (low < high) { // the first one that begins in the step
        const std::size_t middle = low + (high - low) / 2;
        rows[middle].begin < step.begin ? low = middle + 1 : high = middle;
    }
    for (; low < rows.size() && rows[low].begin < step.end; ++low) {
        const profiler::ScopeRow row = rows[low];
        const std::string_view name = timeline.text(row.name);
        const TimeRange range{row.begin, row.end < 0 ? step.end : std::min(row.end, step.end)};
        if (name == "rollout") {
            out.push_back({RlPhaseKind::Rollout, range, 0, {}});
        } else if (name == "train") {
            addUpdates(timeline, range, out);
        }
    }
    return out;
}

std::vector<RlPoolUse> poolUse(const profiler::RunTimeline& timeline, TimeRange step) {
    std::vector<RlPoolUse> out;
    const std::span<const base::BatchStepEvent> all = profiler::events<base::BatchStepEvent>(timeline);
    auto at = std::ranges::lower_bound(all, step.begin, {}, &base::BatchStepEvent::begin);
    for (; at != all.end() && at->begin < step.end; ++at) {
        const std::int64_t pages = at->usedPages + at->cachedPages + at->freePages;
        if (pages > 0) {
            out.push_back({at->begin, static_cast<double>(at->usedPages) / static_cast<double>(pages)});
        }
    }
    return out;
}

/// Stretches with pages, and the largest bytes of each category.
void lookAtCategories(RlStepMemory& step) {
    const auto columns = static_cast<int>(std::clamp<base::TimeNs>(step.length(), 1, kLookedAt));
    const double each = static_cast<double>(step.length()) / columns;
    bool awake = false;
    const std::vector<MemoryColumn> pieces = step.timeline->memory().query(step.range.begin, step.range.end, columns);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        for (std::size_t category = 0; category < step.largest.size(); ++category) {
            step.largest[category] = std::max(step.largest[category], pieces[i].atMax[category]);
        }
        const std::uint64_t pages = pieces[i].atMax[kKvCache];
        const auto from = step.range.begin + static_cast<base::TimeNs>(each * static_cast<double>(i));
        const auto to = step.range.begin + static_cast<base::TimeNs>(each * static_cast<double>(i + 1));
        if (pages > 0 && !awake) {
            step.pool.push_back({{from, to}, pages});
        } else if (pages > 0) {
            step.pool.back().range.end = to;
            step.pool.back().bytes = std::max(step.pool.back().bytes, pages);
        }
        awake = pages > 0;
    }
}

} // namespace

const RlPhase* RlStepMemory::phaseAt(base::TimeNs time) const {
    const auto found = std::ranges::find_if(phases, [&](const RlPhase& phase) { return phase.range.contains(time); });
    return found == phases.end() ? nullptr : &*found;
}

std::optional<double> RlStepMemory::poolUseAt(base::TimeNs time) const {
    const auto next = std::ranges::upper_bound(use, time, {}, &RlPoolUse::time);
    if (use.empty()) {
        return std::nullopt;
    }
    return next == use.begin() ? 0 : std::prev(next)->share;
}

RlStepMemoryPtr rlStepMemory(const TimelinePtr& timeline, const RlRun& run, std::size_t index) {
    if (timeline == nullptr || !run.recorded() || index >= run.size()) {
        return nullptr;
    }
    auto out = std::make_shared<RlStepMemory>();
    out->timeline = timeline;
    out->step = run.number(index);
    out->range = run.times(index);
    out->range.end = std::max(out->range.end, out->range.begin + 1);
    out->phases = phasesIn(*timeline, out->range);
    out->peak = timeline->memory().peak(out->range.begin, out->range.end);
    out->budget = profiler::budgetAt(*timeline, out->range.begin);
    for (std::size_t i = 0; i < out->phases.size(); ++i) {
        RlPhase& phase = out->phases[i];
        phase.peak = timeline->memory().peak(phase.range.begin, std::max(phase.range.end, phase.range.begin + 1));
        if (phase.peak.maxTotal > out->phases[out->peakPhase].peak.maxTotal) {
            out->peakPhase = i;
        }
    }
    for (std::size_t i = 0; i < out->phases.size(); ++i) {
        const bool other =
            (out->phases[i].kind == RlPhaseKind::Rollout) != (out->phases[out->peakPhase].kind == RlPhaseKind::Rollout);
        const auto& best = out->otherPeakPhase;
        if (other && (!best || out->phases[i].peak.maxTotal > out->phases[*best].peak.maxTotal)) {
            out->otherPeakPhase = i;
        }
    }
    out->use = poolUse(*timeline, out->range);
    lookAtCategories(*out);
    return out;
}

QString rlPhaseName(const RlPhase& phase, std::int64_t updates) {
    switch (phase.kind) {
    case RlPhaseKind::Rollout:
        return QObject::tr("rollout");
    case RlPhaseKind::LogProbs:
        return QObject::tr("log-probs");
    case RlPhaseKind::Update:
        break;
    }
    return updates > 1 ? QObject::tr("update %1 of %2").arg(phase.number).arg(updates) : QObject::tr("train");
}

StackModelPtr rlStepStack(const RlStepMemory& step, const AxisMap& axis, int columns) {
    const TimeRange range = axis.range();
    const StackModelPtr all = categoryStack(
        *step.timeline, AxisMap::ofTime({step.range.begin + range.begin, step.range.begin + range.end}, axis.width()),
        columns);
    if (step.use.empty()) {
        return all;
    }
    auto out = std::make_shared<StackModel>();
    out->columns = all->columns;
    out->layers = all->layers;
    out->layers[kKvCache].name = QObject::tr("KV pages in use");
    out->layers.insert(out->layers.begin() + kKvCache + 1, {QObject::tr("KV pool, not in use"), -1, 0, true});
    out->values.reserve(out->columns.size() * out->layers.size());
    for (std::size_t column = 0; column < all->columns.size(); ++column) {
        for (std::size_t layer = 0; layer < all->layers.size(); ++layer) {
            const std::uint64_t bytes = all->value(column, layer);
            if (layer != kKvCache) {
                out->values.push_back(bytes);
                continue;
            }
            const double share = step.poolUseAt(all->columns[column].time).value_or(0);
            const auto used = std::min(bytes, static_cast<std::uint64_t>(share * static_cast<double>(bytes)));
            out->values.push_back(used);
            out->values.push_back(bytes - used);
        }
    }
    return out;
}

} // namespace vitrine::ui
