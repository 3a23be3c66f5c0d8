// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/memory/allocation_links.h"

#include <algorithm>
#include <limits>
#include <string>

#include "profiler/analysis/memory_groups.h"
#include "profiler/analysis/scope_places.h"
#include "profiler/analysis/weight_readers.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

using base::ScopeKind;
using profiler::AllocationRow;
using profiler::RunTimeline;
using profiler::ScopeRow;

namespace {

constexpr std::size_t kScopesLookedAt = 200'000;
constexpr std::size_t kRowsLookedAt = 200'000;

bool isInside(const RunTimeline& timeline, std::uint64_t id, std::uint64_t ancestor) {
    for (const ScopeRow* scope = timeline.scopes().find(id); scope != nullptr;
         scope = timeline.scopes().find(scope->parent)) {
        if (scope->id == ancestor) {
            return true;
        }
    }
    return false;
}

/// The innermost op around an instant, else the innermost layer, phase or step.
const ScopeRow* innermostAt(const RunTimeline& timeline, base::TimeNs time) {
    const auto scopes = timeline.scopes().all();
    std::size_t next = profiler::scopesUpTo(timeline, time);
    for (std::size_t looked = 0; next > 0 && looked < kScopesLookedAt; ++looked) {
        const ScopeRow row = scopes[--next];
        if (profiler::scopeEnd(timeline, row) >= time) {
            return timeline.scopes().find(row.id);
        }
    }
    return nullptr;
}

std::size_t firstBorn(const RunTimeline& timeline, base::TimeNs time) {
    const auto rows = timeline.memory().allocations();
    return static_cast<std::size_t>(
        std::ranges::lower_bound(rows, time, {}, [](const AllocationRow& row) { return row.born; }) - rows.begin());
}

/// Rows of this name and category in [begin, end) that come before row `until`.
std::vector<std::size_t> namesakes(const RunTimeline& timeline, const AllocationRow& like, base::TimeNs begin,
                                   base::TimeNs end, std::size_t until) {
    std::vector<std::size_t> found;
    const auto rows = timeline.memory().allocations();
    const std::size_t first = firstBorn(timeline, begin);
    const std::size_t last = std::min({rows.size(), until, first + kRowsLookedAt});
    for (std::size_t i = first; i < last; ++i) {
        const AllocationRow row = rows[i];
        if (row.born >= end) {
            break;
        }
        if (row.name == like.name && row.category == like.category) {
            found.push_back(i);
        }
    }
    return found;
}

/// Whether the embedding is the head's weight too.
bool isTied(const RunTimeline& timeline) {
    const auto rows = timeline.memory().allocations();
    const std::size_t last = std::min(rows.size(), kRowsLookedAt);
    for (std::size_t i = 0; i < last; ++i) {
        const AllocationRow row = rows[i];
        if (row.category == base::MemoryCategory::Weights &&
            timeline.text(row.name).find("lm_head") != std::string_view::npos) {
            return false;
        }
    }
    return true;
}

/// The ops that read the weight, in the first step that has one.
void addReaders(const RunTimeline& timeline, const AllocationRow& row, base::TimeNs end, std::size_t limit,
                std::vector<AllocationLink>& links) {
    const profiler::WeightReaders readers = profiler::weightReaders(timeline.text(row.name), isTied(timeline));
    const auto scopes = timeline.scopes().all();
    const ScopeRow* step = nullptr;
    std::size_t at = readers.ops.empty() ? scopes.size() : profiler::scopesUpTo(timeline, row.born - 1);
    for (std::size_t looked = 0; at < scopes.size() && looked < kScopesLookedAt && links.size() <= limit; ++looked) {
        const ScopeRow scope = scopes[at++];
        if (scope.begin >= end || (step != nullptr && scope.begin > profiler::scopeEnd(timeline, *step))) {
            break;
        }
        const std::string_view name = timeline.text(scope.name);
        if (scope.kind != ScopeKind::Op || std::ranges::find(readers.ops, name) == readers.ops.end()) {
            continue;
        }
        const ScopeRow* layer = profiler::enclosingScope(timeline, scope.id, ScopeKind::Layer);
        if ((layer == nullptr ? -1 : layer->index) == readers.layer) {
            step = step == nullptr ? profiler::enclosingScope(timeline, scope.id, ScopeKind::Step) : step;
            links.push_back({AllocationLink::Kind::Read, scope.begin, scope.id, textOf(name)});
        }
    }
}

/// The ops of the step that began while it lived.
void addOpsMeanwhile(const RunTimeline& timeline, const AllocationRow& row, base::TimeNs end, std::size_t limit,
                     std::vector<AllocationLink>& links) {
    const ScopeRow* step = profiler::enclosingScope(timeline, row.scope, ScopeKind::Step);
    const base::TimeNs stepEnd = step != nullptr ? std::min(end, profiler::scopeEnd(timeline, *step)) : end;
    const auto scopes = timeline.scopes().all();
    std::size_t at = profiler::scopesUpTo(timeline, row.born - 1);
    for (std::size_t looked = 0; at < scopes.size() && looked < kScopesLookedAt && links.size() <= limit; ++looked) {
        const ScopeRow scope = scopes[at++];
        if (scope.begin >= stepEnd) {
            break;
        }
        // What runs inside the maker is the maker; ops inside ops would show the same thing twice.
        const ScopeRow* parent = timeline.scopes().find(scope.parent);
        if (scope.kind == ScopeKind::Op && scope.id != row.scope && !isInside(timeline, scope.id, row.scope) &&
            (parent == nullptr || parent->kind != ScopeKind::Op)) {
            links.push_back({AllocationLink::Kind::Ran, scope.begin, scope.id, textOf(timeline.text(scope.name))});
        }
    }
}

} // namespace

base::TimeNs endOfWork(const RunTimeline& timeline) {
    const auto scopes = timeline.scopes().all();
    std::size_t next = scopes.size();
    for (std::size_t looked = 0; next > 0 && looked < kScopesLookedAt; ++looked) {
        const ScopeRow scope = scopes[--next];
        if (scope.kind == ScopeKind::Phase) {
            return profiler::scopeEnd(timeline, scope);
        }
    }
    return std::numeric_limits<base::TimeNs>::max();
}

bool livesToTheEnd(const RunTimeline& timeline, const AllocationRow& row, base::TimeNs workEnd) {
    return row.freed < 0 ||
           (row.freed >= workEnd && profiler::enclosingScope(timeline, row.scope, ScopeKind::Step) == nullptr);
}

std::vector<AllocationLink> allocationLinks(const RunTimeline& timeline, std::size_t index, std::size_t limit) {
    std::vector<AllocationLink> links;
    const AllocationRow row = timeline.memory().allocations()[index];
    const ScopeRow* maker = timeline.scopes().find(row.scope);
    const std::string op = maker == nullptr || maker->kind != ScopeKind::Op
                               ? profiler::scratchOwner(timeline.text(row.name))
                               : std::string();
    links.push_back({AllocationLink::Kind::Made, row.born, row.scope,
                     !op.empty()        ? textOf(op)
                     : maker != nullptr ? textOf(timeline.text(maker->name))
                                        : QString()});
    const base::TimeNs end = row.freed < 0 ? timeline.end() : row.freed;
    const bool weight = row.category == base::MemoryCategory::Weights;
    (weight ? addReaders : addOpsMeanwhile)(timeline, row, end, limit, links);
    if (!livesToTheEnd(timeline, row, endOfWork(timeline))) {
        const ScopeRow* last = innermostAt(timeline, row.freed);
        links.push_back({AllocationLink::Kind::Freed, row.freed, last != nullptr ? last->id : 0,
                         last != nullptr ? textOf(timeline.text(last->name)) : QString()});
    }
    return links;
}

std::optional<EarlierTensor> earlierTensor(const RunTimeline& timeline, std::size_t index) {
    const AllocationRow row = timeline.memory().allocations()[index];
    const ScopeRow* step = profiler::enclosingScope(timeline, row.scope, ScopeKind::Step);
    const ScopeRow* before = step != nullptr ? profiler::stepBefore(timeline, *step) : nullptr;
    if (before == nullptr) {
        return std::nullopt;
    }
    // Layers may give their tensors the same name: the one in the same place of the order is the same tensor.
    const std::size_t place = namesakes(timeline, row, step->begin, row.born + 1, index).size();
    const auto earlier =
        namesakes(timeline, row, before->begin, std::min(profiler::scopeEnd(timeline, *before), step->begin), index);
    if (place >= earlier.size()) {
        return std::nullopt;
    }
    return EarlierTensor{earlier[place], QString::fromStdString(profiler::scopeName(timeline, *before)),
                         before->tokens};
}

} // namespace vitrine::ui
