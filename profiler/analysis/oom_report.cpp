// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/oom_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "base/error.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/counter_facet.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

namespace {

using base::TimeNs;

/// The first instant in [begin, end) at which the tensor of that name was about to be made.
std::optional<TimeNs> beforeTensor(const RunTimeline& timeline, TimeNs begin, TimeNs end,
                                   const base::OutOfMemoryEvent& event) {
    const auto rows = timeline.memory().allocations();
    const auto first = static_cast<std::size_t>(
        std::ranges::lower_bound(rows, begin, {}, [](const AllocationRow& row) { return row.born; }) - rows.begin());
    for (std::size_t i = first; i < rows.size(); ++i) {
        const AllocationRow row = rows[i];
        if (row.born >= end) {
            break;
        }
        if (event.name.value != 0 && row.name == event.name.value && row.category == event.category) {
            return std::max(begin, row.born - 1);
        }
    }
    return std::nullopt;
}

/// The same point in the step before: just before it got the tensor of that name, else the most that the same op held.
TimeNs comparable(const RunTimeline& timeline, const ScopeRow& before, const base::OutOfMemoryEvent& event) {
    const TimeNs end = scopeEnd(timeline, before);
    if (const auto tensor = beforeTensor(timeline, before.begin, end, event)) {
        return *tensor;
    }
    TimeNs from = before.begin;
    TimeNs to = end;
    if (const ScopeRow* failed = timeline.scopes().find(event.scope.value)) {
        const LazyRows<ScopeRow> scopes = timeline.scopes().all();
        for (std::size_t i = scopesUpTo(timeline, before.begin - 1); i < scopes.size(); ++i) {
            const ScopeRow scope = scopes[i];
            if (scope.begin >= end) {
                break;
            }
            if (scope.name == failed->name && scope.kind == failed->kind && scope.end >= 0) {
                from = scope.begin;
                to = scope.end;
            }
        }
    }
    return timeline.memory().peak(from, std::max(to, from + 1)).maxTime;
}

std::vector<ScopeRow> phasesOf(const RunTimeline& timeline, const ScopeRow& step) {
    auto phases = childScopes(timeline, step.id, base::ScopeKind::Phase, step.begin, scopeEnd(timeline, step));
    return phases.empty() ? std::vector<ScopeRow>{step} : phases;
}

std::vector<std::uint64_t> totalsOf(const RunTimeline& timeline, TimeNs begin, TimeNs end, int points) {
    std::vector<std::uint64_t> totals;
    for (const MemoryColumn& column : timeline.memory().query(begin, std::max(end, begin + 1), std::max(1, points))) {
        totals.push_back(column.maxTotal);
    }
    return totals;
}

std::uint64_t reservedAt(const RunTimeline& timeline, TimeNs time, std::uint64_t unknown) {
    std::uint64_t reserved = 0;
    for (const auto& [at, value] : timeline.counters().samples("reserved_bytes")) {
        if (at > time) {
            break;
        }
        reserved = value > 0 ? static_cast<std::uint64_t>(value) : 0;
    }
    return std::max(reserved, unknown);
}

/// What the failure is compared with.
void findBefore(const RunTimeline& timeline, OomReport& report) {
    const base::OutOfMemoryEvent& event = report.event;
    const ScopeRow* phase = report.phase;
    std::vector<ScopeRow> steps;
    if (phase != nullptr) {
        steps = childScopes(timeline, phase->id, base::ScopeKind::Step, phase->begin, event.time);
    }
    if (report.step != nullptr) {
        report.before = stepBefore(timeline, *report.step);
        std::erase_if(steps, [&](const ScopeRow& row) {
            return row.begin >= report.step->begin || row.name != report.step->name;
        });
    } else if (!steps.empty()) {
        report.before = timeline.scopes().find(steps.back().id);
    }
    for (const ScopeRow& row : steps) {
        report.tokensDone += row.tokens;
    }
    report.beforeTime = phase != nullptr ? phase->begin : timeline.begin();
    if (report.step != nullptr && report.before != nullptr) {
        report.beforeTime = comparable(timeline, *report.before, event);
    } else if (report.before != nullptr) {
        // A cache grows before the step that needs it.
        const ScopeRow* earlier = stepBefore(timeline, *report.before);
        const TimeNs from = earlier != nullptr ? scopeEnd(timeline, *earlier) : report.beforeTime;
        report.beforeTime =
            beforeTensor(timeline, from, event.time, event).value_or(std::max<TimeNs>(from, report.before->begin - 1));
    }
    report.heldBefore = timeline.memory().at(report.beforeTime);
    report.reservedBefore = reservedAt(timeline, report.beforeTime, totalBytes(report.heldBefore));
}

/// The last step and what followed it up to the failure, over the step before it.
std::vector<PhasePair> lastSteps(const RunTimeline& timeline, const OomReport& report, int points) {
    const ScopeRow& last = *report.before;
    const ScopeRow* earlier = stepBefore(timeline, last);
    if (earlier == nullptr) {
        return {};
    }
    const TimeNs now = std::max<TimeNs>(1, report.event.time - last.begin);
    const TimeNs before = std::max<TimeNs>(1, last.begin - earlier->begin);
    const auto share = [&](TimeNs length) {
        return static_cast<int>(
            std::lround(points * static_cast<double>(length) / static_cast<double>(std::max(now, before))));
    };
    PhasePair pair{last, 0, 1, totalsOf(timeline, last.begin, last.begin + now, share(now)),
                   totalsOf(timeline, earlier->begin, last.begin, share(before))};
    pair.now.push_back(totalBytes(report.held));
    return {std::move(pair)};
}

} // namespace

OomReport oomReport(const RunTimeline& timeline, std::size_t failure) {
    const auto failures = timeline.memory().outOfMemory();
    if (failure >= failures.size()) {
        throw base::Internal(fmt::format("out-of-memory report {} of {}", failure, failures.size()));
    }
    OomReport report;
    report.event = failures[failure];
    report.failure = failure;
    report.held = timeline.memory().atEvent(timeline.memory().eventsBeforeOutOfMemory(failure));
    base::OutOfMemoryEvent& event = report.event;
    report.incomplete = timeline.memory().incompleteFrom().value_or(event.time + 1) <= event.time;
    const std::uint64_t inUse = totalBytes(report.held);
    event.reserved = event.reserved != 0 ? event.reserved : inUse; // other tools' files do not say it
    report.free = event.budget > event.reserved ? event.budget - event.reserved : 0;
    report.missing = event.requested > report.free ? event.requested - report.free : 0;
    const std::uint64_t inNone = event.reserved > inUse ? event.reserved - inUse : 0;
    report.idle = std::min(event.arenaIdle, inNone);
    report.unused = inNone - report.idle;
    const std::uint64_t room = report.free + report.unused;
    report.fragmentation =
        room > 0 ? 1.0 - static_cast<double>(std::min(event.largestFree, room)) / static_cast<double>(room) : 0;
    report.op = enclosingScope(timeline, event.scope.value, base::ScopeKind::Op);
    report.phase = enclosingScope(timeline, event.scope.value, base::ScopeKind::Phase);
    report.step = enclosingScope(timeline, event.scope.value, base::ScopeKind::Step);
    report.layer = enclosingScope(timeline, event.scope.value, base::ScopeKind::Layer);
    findBefore(timeline, report);
    return report;
}

MemoryGroup groupHeld(const RunTimeline& timeline, std::size_t failure, GroupBy by) {
    return groupAliveAtEvent(timeline, timeline.memory().eventsBeforeOutOfMemory(failure), by);
}

std::vector<PhasePair> phasePairs(const RunTimeline& timeline, const OomReport& report, int points) {
    std::vector<PhasePair> pairs;
    if (report.betweenSteps()) {
        return lastSteps(timeline, report, points);
    }
    if (report.step == nullptr || report.before == nullptr) {
        return pairs;
    }
    const std::vector<ScopeRow> now = phasesOf(timeline, *report.step), before = phasesOf(timeline, *report.before);
    const auto length = [&](const ScopeRow& scope) {
        return static_cast<double>(std::max<TimeNs>(1, scopeEnd(timeline, scope) - scope.begin));
    };
    // Up to the phase that failed: what the step before did after it compares with nothing.
    const std::size_t count = std::min(now.size(), before.size());
    double whole = 0;
    for (std::size_t i = 0; i < count; ++i) {
        whole += std::max(length(now[i]), length(before[i]));
    }
    double done = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double longest = std::max(length(now[i]), length(before[i]));
        PhasePair pair{now[i], done / whole, (done + longest) / whole, {}, {}};
        const int own = std::max(2, static_cast<int>(std::lround(points * longest / whole)));
        // A phase stands over the same phase whatever its speed; the one that failed ends where it was cut short.
        const bool failed = i + 1 == count;
        const auto part = [&](const ScopeRow& scope) {
            const double share = failed ? length(scope) / longest : 1;
            return totalsOf(timeline, scope.begin, scopeEnd(timeline, scope),
                            static_cast<int>(std::lround(own * share)));
        };
        pair.now = part(now[i]);
        pair.before = part(before[i]);
        if (failed && !pair.now.empty()) {
            pair.now.back() = totalBytes(report.held); // the last state, before what it held was freed
        }
        done += longest;
        pairs.push_back(std::move(pair));
    }
    return pairs;
}

} // namespace vitrine::profiler
