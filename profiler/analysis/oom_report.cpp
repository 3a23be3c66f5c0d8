// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/oom_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

#include "base/error.h"
#include "base/units.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/analysis/words.h"

namespace vitrine::profiler {

namespace {

using base::TimeNs;

std::uint64_t totalOf(const base::CategoryBytes& bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

TimeNs endOf(const MemoryTimeline& timeline, const ScopeRow& scope) {
    return scope.end < 0 ? timeline.end() : scope.end;
}

/// The latest step of the same name that ended before this one began.
std::optional<ScopeRow> stepBefore(const MemoryTimeline& timeline, const ScopeRow& step) {
    const LazyRows<ScopeRow> scopes = timeline.scopes();
    for (std::size_t i = scopesUpTo(timeline, step.begin); i-- > 0;) {
        const ScopeRow row = scopes[i];
        if (row.kind == base::ScopeKind::Step && row.id != step.id && row.name == step.name && row.end >= 0 &&
            row.end <= step.begin) {
            return row;
        }
    }
    return std::nullopt;
}

/// The category that differs most.
base::MemoryCategory mostChanged(const base::CategoryBytes& before, const base::CategoryBytes& now) {
    std::size_t most = 0;
    std::int64_t largest = -1;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const auto change = std::abs(static_cast<std::int64_t>(now[i] - before[i]));
        if (change > largest) {
            largest = change;
            most = i;
        }
    }
    return static_cast<base::MemoryCategory>(most);
}

class Reporter {
public:
    Reporter(const MemoryTimeline& timeline, std::size_t index)
        : timeline_(timeline), places_(timeline), events_(timeline.eventsBeforeOutOfMemory(index)) {
        report_.event = timeline.outOfMemory()[index];
    }

    OomReport make() {
        const base::OutOfMemoryEvent& event = report_.event;
        report_.tensor = std::string(timeline_.text(event.name.value));
        report_.heldBy = timeline_.atEvent(events_);
        report_.held = event.held != 0 ? event.held : totalOf(report_.heldBy);
        report_.free = event.budget > report_.held ? event.budget - report_.held : 0;
        report_.missing = event.requested > report_.free ? event.requested - report_.free : 0;
        report_.byCategory = groupAliveAtEvent(timeline_, events_, GroupBy::Category);
        report_.byLayer = groupAliveAtEvent(timeline_, events_, GroupBy::Layer);
        report_.byOp = groupAliveAtEvent(timeline_, events_, GroupBy::Op);
        findSteps();
        describeSentence();
        if (step_) {
            describePhases();
        }
        if (previous_) {
            describeChanges();
        }
        describeCause();
        return std::move(report_);
    }

private:
    void findSteps() {
        const ScopePlace& place = places_.of(report_.event.scope.value);
        if (const ScopeRow* const step = timeline_.scope(place.stepScope); place.stepScope != 0 && step != nullptr) {
            step_ = *step;
            report_.step = scopeName(timeline_, *step);
            report_.tokens = step->tokens;
            previous_ = stepBefore(timeline_, *step);
        }
        if (previous_) {
            report_.previousStep = scopeName(timeline_, *previous_);
            report_.previousTokens = previous_->tokens;
        }
    }

    void describeSentence() {
        const base::OutOfMemoryEvent& event = report_.event;
        const ScopePlace& place = places_.of(event.scope.value);
        std::string who = report_.step;
        if (who.empty()) {
            who = place.phase != 0 ? std::string(timeline_.text(place.phase)) : "the run";
        }
        const std::string what =
            report_.tensor.empty() ? std::string(base::categoryName(event.category)) : report_.tensor;
        report_.sentence =
            fmt::format("{} asked for {} to hold {}. ", capitalised(who), base::formatBytes(event.requested), what);
        if (report_.missing > 0) {
            report_.sentence += fmt::format("Only {} of the {} budget were free.", base::formatBytes(report_.free),
                                            base::formatBytes(event.budget));
        } else {
            report_.sentence += fmt::format("{} of the {} budget were free, but the largest free block was {}.",
                                            base::formatBytes(report_.free), base::formatBytes(event.budget),
                                            base::formatBytes(event.largestFree));
        }
    }

    /// The peak of a scope, up to the failure.
    MemoryColumn peakOf(const ScopeRow& scope) const {
        const TimeNs end = endOf(timeline_, scope);
        return timeline_.peak(scope.begin, end <= report_.event.time ? end : report_.event.time + 1);
    }

    void addPhase(const std::string& name, const ScopeRow& now, const std::optional<ScopeRow>& before) {
        const MemoryColumn peak = peakOf(now);
        PhaseChange change{name, std::nullopt, peak.maxTotal,
                           fmt::format("{}: peak {}", name, base::formatBytes(peak.maxTotal))};
        if (before) {
            const MemoryColumn earlier = peakOf(*before);
            change.before = earlier.maxTotal;
            const auto difference = static_cast<std::int64_t>(peak.maxTotal - earlier.maxTotal);
            change.words += difference == 0
                                ? fmt::format(", as in {}", report_.previousStep)
                                : fmt::format(", {} in {} ({}, most of it {})", base::formatBytes(earlier.maxTotal),
                                              report_.previousStep, signedBytes(difference),
                                              base::categoryName(mostChanged(earlier.atMax, peak.atMax)));
        }
        report_.phases.push_back(std::move(change));
    }

    void describePhases() {
        const auto phasesOf = [&](const ScopeRow& step) {
            return childScopes(timeline_, step.id, base::ScopeKind::Phase, step.begin,
                               std::min(endOf(timeline_, step), report_.event.time));
        };
        const std::vector<ScopeRow> now = phasesOf(*step_);
        const std::vector<ScopeRow> before = previous_ ? phasesOf(*previous_) : std::vector<ScopeRow>();
        if (now.empty()) {
            addPhase("whole step", *step_, previous_);
        }
        for (std::size_t i = 0; i < now.size(); ++i) {
            const auto same = std::ranges::find(before, now[i].name, &ScopeRow::name);
            addPhase(std::string(timeline_.text(now[i].name)), now[i],
                     same == before.end() ? std::nullopt : std::optional<ScopeRow>(*same));
            if (i + 1 == now.size() && same != before.end()) {
                samePlace_ = *same;
            }
        }
    }

    void describeChanges() {
        // The step before stands where it held the most in the phase that now failed.
        before_ = peakOf(samePlace_ ? *samePlace_ : *previous_).atMax;
        for (std::size_t i = 0; i < base::kCategoryCount; ++i) {
            const auto category = static_cast<base::MemoryCategory>(i);
            const std::uint64_t asked = category == report_.event.category ? report_.event.requested : 0;
            if (before_[i] + report_.heldBy[i] + asked > 0) {
                report_.changes.push_back({category, before_[i], report_.heldBy[i] + asked});
            }
        }
        std::ranges::stable_sort(report_.changes, std::greater(), [](const CategoryChange& change) {
            return static_cast<std::int64_t>(change.now - change.before);
        });
    }

    void describeCause() {
        if (report_.byCategory.children.empty()) {
            return;
        }
        const MemoryGroup& largest = report_.byCategory.children.front();
        report_.cause = fmt::format("{} {} the most: {}, {} of what is held", capitalised(largest.name),
                                    largest.name.ends_with('s') ? "hold" : "holds", base::formatBytes(largest.bytes),
                                    percent(largest.share));
        if (previous_ && !report_.changes.empty()) {
            const CategoryChange& grown = report_.changes.front();
            const auto difference = static_cast<std::int64_t>(grown.now - grown.before);
            if (difference > 0) {
                report_.cause += fmt::format(
                    ". With this request {} would need {} more than in {}", base::categoryName(grown.category),
                    base::formatBytes(static_cast<std::uint64_t>(difference)), report_.previousStep);
                if (report_.tokens != report_.previousTokens && report_.previousTokens > 0) {
                    report_.cause += fmt::format(", for {} tokens instead of {}", base::formatGrouped(report_.tokens),
                                                 base::formatGrouped(report_.previousTokens));
                }
            }
        }
        report_.cause += ".";
    }

    const MemoryTimeline& timeline_;
    ScopePlaces places_;
    std::uint64_t events_; ///< before the failure
    OomReport report_;
    std::optional<ScopeRow> step_, previous_, samePlace_;
    base::CategoryBytes before_{};
};

} // namespace

OomReport oomReport(const MemoryTimeline& timeline, std::size_t index) {
    if (index >= timeline.outOfMemory().size()) {
        throw base::Internal(fmt::format("out-of-memory report {} of {}", index, timeline.outOfMemory().size()));
    }
    return Reporter(timeline, index).make();
}

std::string oomText(const OomReport& report) {
    std::string text = report.sentence + "\n" + report.cause + "\n\nWhat held the memory\n";
    for (const MemoryGroup& group : report.byCategory.children) {
        text += fmt::format("  {:<12} {:>12}  {:>7}  {} blocks\n", group.name, base::formatBytes(group.bytes),
                            percent(group.share), group.blocks);
        for (const MemoryGroup& part : group.children) {
            text += fmt::format("    {:<28} {:>12}\n", part.name, base::formatBytes(part.bytes));
        }
    }
    if (!report.previousStep.empty()) {
        text += fmt::format("\nWhat changed since {}\n", report.previousStep);
        for (const CategoryChange& change : report.changes) {
            text += fmt::format("  {:<12} {:>12} to {:>12}  {}\n", base::categoryName(change.category),
                                base::formatBytes(change.before), base::formatBytes(change.now),
                                signedBytes(static_cast<std::int64_t>(change.now - change.before)));
        }
    }
    for (const PhaseChange& phase : report.phases) {
        text += "  " + phase.words + "\n";
    }
    return text;
}

} // namespace vitrine::profiler
