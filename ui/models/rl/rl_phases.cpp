// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/rl/rl_phases.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/workload/rl/rollout_names.h"
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
constexpr base::TimeNs kLateBegin = 50; ///< a part of the step, by which its begin is late at most
constexpr int kLookedAt = 2000;         ///< pieces of a step whose categories are looked at
constexpr std::size_t kNamedParts = 2;  ///< of what is held, in words

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

/// Where the step lies by its own rollout: the numbers of a step say so after its evaluation, which is no part of it.
TimeRange placeOf(const profiler::RunTimeline& timeline, TimeRange step, std::int64_t number) {
    constexpr std::size_t kLookedBack = 64; // phases: those of a step are few
    const profiler::LazyRows<profiler::ScopeRow> rows = timeline.scopes().phases();
    std::size_t low = 0, high = rows.size();
    while (low < high) { // the first one that begins after the step
        const std::size_t middle = low + (high - low) / 2;
        rows[middle].begin < step.end ? low = middle + 1 : high = middle;
    }
    for (std::size_t back = 1; back <= std::min(low, kLookedBack); ++back) {
        const profiler::ScopeRow row = rows[low - back];
        if (row.index == number && timeline.text(row.name) == "rollout") {
            return {row.begin, row.begin + step.length()};
        }
    }
    return step;
}

std::vector<RlPhase> phasesIn(const profiler::RunTimeline& timeline, TimeRange step) {
    std::vector<RlPhase> out;
    const profiler::LazyRows<profiler::ScopeRow> rows = timeline.scopes().phases();
    std::size_t low = 0, high = rows.size();
    // The numbers of a step come a little after its end, and so its begin is a little late.
    const base::TimeNs first = step.begin - step.length() / kLateBegin;
    while (low < high) { // the first one that begins in the step
        const std::size_t middle = low + (high - low) / 2;
        rows[middle].begin < first ? low = middle + 1 : high = middle;
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

/// The step beside another one, in which memory was recorded; of two, the one before.
std::optional<std::int64_t> nearestWithMemory(const profiler::RunTimeline& timeline, const RlRun& run,
                                              std::size_t index) {
    const auto has = [&](std::size_t step) {
        const TimeRange times = run.times(step);
        return timeline.memory().peak(times.begin, std::max(times.end, times.begin + 1)).maxTotal > 0;
    };
    for (std::size_t away = 1; away <= index || index + away < run.size(); ++away) {
        if (away <= index && has(index - away)) {
            return run.number(index - away);
        }
        if (index + away < run.size() && has(index + away)) {
            return run.number(index + away);
        }
    }
    return std::nullopt;
}

/// Copies of weights live as long as the sampler is awake, so those of the rollout's peak are all.
void lookAtRolloutWeights(RlStepMemory& step) {
    const auto rollout = std::ranges::find(step.phases, RlPhaseKind::Rollout, &RlPhase::kind);
    if (rollout == step.phases.end() || !step.timeline->memory().complete()) {
        return;
    }
    const profiler::MemoryFacet& memory = step.timeline->memory();
    const auto allocations = memory.allocations();
    for (const std::size_t index : memory.aliveAt(rollout->peak.maxTime)) {
        const profiler::AllocationRow row = allocations[index];
        if (row.category != base::MemoryCategory::Weights ||
            !step.timeline->text(row.name).ends_with(engine::kRolloutCopy)) {
            continue;
        }
        const base::TimeNs end = row.freed < 0 ? step.range.end : row.freed;
        step.rolloutWeightsAt = step.rolloutWeights == 0 ? TimeRange{row.born, end}
                                                         : TimeRange{std::min(step.rolloutWeightsAt.begin, row.born),
                                                                     std::max(step.rolloutWeightsAt.end, end)};
        step.rolloutWeights += row.bytes;
    }
}

} // namespace

const RlPhase* RlStepMemory::phaseAt(base::TimeNs time) const {
    const auto found = std::ranges::find_if(phases, [&](const RlPhase& phase) { return phase.range.contains(time); });
    return found == phases.end() ? nullptr : &*found;
}

std::optional<base::TimeNs> RlStepMemory::afterSleep() const {
    const auto rollout = std::ranges::find(phases, RlPhaseKind::Rollout, &RlPhase::kind);
    return rollout == phases.end() ? std::nullopt : std::optional(rollout->range.end - 1);
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
    out->range = placeOf(*timeline, run.times(index), out->step);
    out->range.end = std::max(out->range.end, out->range.begin + 1);
    out->phases = phasesIn(*timeline, out->range);
    if (!out->phases.empty()) {
        out->range.begin = std::min(out->range.begin, out->phases.front().range.begin);
    }
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
    if (!out->hasMemory()) {
        out->nearestWithMemory = nearestWithMemory(*timeline, run, index);
    }
    out->use = poolUse(*timeline, out->range);
    lookAtCategories(*out);
    lookAtRolloutWeights(*out);
    out->most = rlStepParts(*out, std::nullopt);
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

namespace {

/// The layers of a step from bottom to top, each with what it takes of its category.
enum class StepShare : std::uint8_t { All, TrainerWeights, RolloutWeights, UsedPages, FreePages };
struct StepLayer {
    StackLayer layer;
    std::size_t category = 0;
    StepShare share = StepShare::All;
};

std::vector<StepLayer> stepLayers(const RlStepMemory& step) {
    constexpr auto kWeights = static_cast<std::size_t>(base::MemoryCategory::Weights);
    std::vector<StepLayer> out;
    for (std::size_t i = 0; i < step.largest.size(); ++i) {
        const auto category = static_cast<int>(i);
        const QString name = textOf(base::categoryName(static_cast<base::MemoryCategory>(category)));
        if (i == kWeights && step.rolloutWeights > 0) {
            out.push_back({{QObject::tr("trainer weights"), category, 0}, i, StepShare::TrainerWeights});
            out.push_back({{QObject::tr("rollout weights"), category, kSecondRole}, i, StepShare::RolloutWeights});
        } else if (i == kKvCache && !step.use.empty()) {
            out.push_back({{QObject::tr("KV pages in use"), category, 0}, i, StepShare::UsedPages});
            out.push_back({{QObject::tr("KV pool, not in use"), -1, 0, true}, i, StepShare::FreePages});
        } else {
            out.push_back({{name, category, 0}, i, StepShare::All});
        }
    }
    return out;
}

/// Of the bytes of its category at an instant of the run.
std::uint64_t bytesOf(const RlStepMemory& step, const StepLayer& layer, base::TimeNs time, std::uint64_t bytes) {
    const std::uint64_t copies =
        step.rolloutWeightsAt.contains(time) ? std::min(bytes, step.rolloutWeights) : 0; // of weights
    const double share = step.poolUseAt(time).value_or(0);
    const auto used = std::min(bytes, static_cast<std::uint64_t>(share * static_cast<double>(bytes))); // of pages
    switch (layer.share) {
    case StepShare::TrainerWeights:
        return bytes - copies;
    case StepShare::RolloutWeights:
        return copies;
    case StepShare::UsedPages:
        return used;
    case StepShare::FreePages:
        return bytes - used;
    case StepShare::All:
        break;
    }
    return bytes;
}

} // namespace

StackModelPtr rlStepStack(const RlStepMemory& step, const AxisMap& axis, int columns) {
    const TimeRange range = axis.range();
    const StackModelPtr all = categoryStack(
        *step.timeline, AxisMap::ofTime({step.range.begin + range.begin, step.range.begin + range.end}, axis.width()),
        columns);
    auto out = std::make_shared<StackModel>();
    out->columns = all->columns;
    const std::vector<StepLayer> layers = stepLayers(step);
    for (const StepLayer& layer : layers) {
        out->layers.push_back(layer.layer);
    }
    out->values.reserve(out->columns.size() * layers.size());
    for (std::size_t column = 0; column < all->columns.size(); ++column) {
        for (const StepLayer& layer : layers) {
            out->values.push_back(bytesOf(step, layer, all->columns[column].time, all->value(column, layer.category)));
        }
    }
    return out;
}

std::vector<RlStepPart> rlStepParts(const RlStepMemory& step, std::optional<base::TimeNs> at) {
    std::vector<RlStepPart> out;
    const base::CategoryBytes bytes = at ? step.timeline->memory().at(*at) : base::CategoryBytes{};
    const StackModelPtr all =
        at ? nullptr : rlStepStack(step, AxisMap::ofTime({0, step.length()}, kLookedAt), kLookedAt);
    const std::vector<StepLayer> layers = stepLayers(step);
    for (std::size_t i = 0; i < layers.size(); ++i) {
        RlStepPart part{layers[i].layer, 0};
        if (at) {
            part.bytes = bytesOf(step, layers[i], *at, bytes[layers[i].category]);
        }
        for (std::size_t column = 0; all != nullptr && column < all->columns.size(); ++column) {
            part.bytes = std::max(part.bytes, all->value(column, i));
        }
        out.push_back(std::move(part));
    }
    return out;
}

QString rlLargestText(const RlStepMemory& step, base::TimeNs at, std::size_t most) {
    std::vector<RlStepPart> parts = rlStepParts(step, at);
    std::ranges::stable_sort(parts, std::ranges::greater{}, &RlStepPart::bytes);
    QStringList words;
    for (std::size_t i = 0; i < std::min(most, parts.size()) && parts[i].bytes > 0; ++i) {
        words << QStringLiteral("%1 %2").arg(parts[i].layer.name, bytesText(parts[i].bytes));
    }
    return words.join(QStringLiteral(", "));
}

QString rlAsleepText(const RlStepMemory& step) {
    const std::optional<base::TimeNs> at = step.afterSleep();
    // A pool that is there when training begins has given nothing back.
    if (!at || step.pool.empty() || step.timeline->memory().at(*at)[kKvCache] > 0) {
        return {};
    }
    std::uint64_t stays = 0;
    for (const RlStepPart& part : rlStepParts(step, at)) {
        stays += part.bytes;
    }
    return QObject::tr("%1 given back, %2 stayed: %3")
        .arg(bytesText(step.pool.front().bytes), bytesText(stays), rlLargestText(step, *at, kNamedParts));
}

QString rlHeldText(const RlStepMemory& step) {
    QStringList out;
    if (const QString peak = rlLargestText(step, step.peak.maxTime, kNamedParts + 1); !peak.isEmpty()) {
        out << QObject::tr("At the peak: %1.").arg(peak);
    }
    if (const QString asleep = rlAsleepText(step); !asleep.isEmpty()) {
        out << QObject::tr("Asleep: %1.").arg(asleep);
    }
    return out.join(QLatin1Char(' '));
}

} // namespace vitrine::ui
