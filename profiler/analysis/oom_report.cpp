// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/oom_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/memory_totals.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

namespace {

using base::TimeNs;

/// The same point in the step before: just before it got the tensor of that name, else the most that the same op held.
TimeNs comparable(const RunTimeline& timeline, const ScopeRow& before, const base::OutOfMemoryEvent& event) {
    const TimeNs end = scopeEnd(timeline, before);
    const auto rows = timeline.memory().allocations();
    const auto first = static_cast<std::size_t>(
        std::ranges::lower_bound(rows, before.begin, {}, [](const AllocationRow& row) { return row.born; }) -
        rows.begin());
    for (std::size_t i = first; i < rows.size(); ++i) {
        const AllocationRow row = rows[i];
        if (row.born >= end) {
            break;
        }
        if (event.name.value != 0 && row.name == event.name.value && row.category == event.category) {
            return std::max(before.begin, row.born - 1);
        }
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

std::vector<std::uint64_t> totalsOf(const RunTimeline& timeline, const ScopeRow& scope, int points) {
    std::vector<std::uint64_t> totals;
    const TimeNs end = std::max(scopeEnd(timeline, scope), scope.begin + 1);
    for (const MemoryColumn& column : timeline.memory().query(scope.begin, end, std::max(1, points))) {
        totals.push_back(column.maxTotal);
    }
    return totals;
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
    report.unused = event.reserved > inUse ? event.reserved - inUse : 0;
    const std::uint64_t room = report.free + report.unused;
    report.fragmentation =
        room > 0 ? 1.0 - static_cast<double>(std::min(event.largestFree, room)) / static_cast<double>(room) : 0;
    report.op = enclosingScope(timeline, event.scope.value, base::ScopeKind::Op);
    report.phase = enclosingScope(timeline, event.scope.value, base::ScopeKind::Phase);
    report.step = enclosingScope(timeline, event.scope.value, base::ScopeKind::Step);
    report.before = report.step != nullptr ? stepBefore(timeline, *report.step) : nullptr;
    if (report.before != nullptr) {
        report.beforeTime = comparable(timeline, *report.before, event);
        report.heldBefore = timeline.memory().at(report.beforeTime);
    }
    return report;
}

MemoryGroup groupHeld(const RunTimeline& timeline, std::size_t failure, GroupBy by) {
    return groupAliveAtEvent(timeline, timeline.memory().eventsBeforeOutOfMemory(failure), by);
}

std::vector<PhasePair> phasePairs(const RunTimeline& timeline, const OomReport& report, int points) {
    std::vector<PhasePair> pairs;
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
            return totalsOf(timeline, scope, static_cast<int>(std::lround(own * share)));
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
