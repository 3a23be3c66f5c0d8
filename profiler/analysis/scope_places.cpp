// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/scope_places.h"

#include <bit>
#include <charconv>
#include <fmt/format.h>

#include "profiler/analysis/number_text.h"
#include "profiler/timeline/run_timeline.h"
#include "profiler/timeline/scope_facet.h"

namespace vitrine::profiler {

namespace {
constexpr int kMaxDepth = 64;
constexpr std::size_t kScopesLookedAt = 200'000;
} // namespace

ScopePlace placeInside(ScopePlace outer, const ScopeRow& row) {
    switch (row.kind) {
    case base::ScopeKind::Op:
        outer.op = row.name != 0 ? row.name : outer.op;
        break;
    case base::ScopeKind::Layer:
        outer.layer = row.index >= 0 ? row.index : outer.layer;
        break;
    case base::ScopeKind::Step:
        outer.step = row.index;
        outer.stepScope = row.id;
        break;
    case base::ScopeKind::Phase:
        outer.phase = row.name;
        outer.phaseScope = row.id;
        break;
    case base::ScopeKind::Run:
        break;
    }
    return outer;
}

ScopePlaces::Known& ScopePlaces::slot(std::uint64_t scope) {
    constexpr int kIndexBits = std::countr_zero(kKnown);
    return known_[static_cast<std::size_t>((scope * 0x9E3779B97F4A7C15U) >> (64 - kIndexBits))];
}

ScopePlace ScopePlaces::of(std::uint64_t scope) {
    return at(scope, 0);
}

ScopePlace ScopePlaces::at(std::uint64_t scope, int depth) {
    if (scope == 0 || depth == kMaxDepth) { // a damaged session may have circles
        return {};
    }
    if (const Known& known = slot(scope); known.scope == scope) {
        return known.place;
    }
    const std::optional<ScopeRow> row = timeline_.scopes().row(scope);
    if (!row) {
        return {};
    }
    const ScopePlace place = placeInside(row->parent != scope ? at(row->parent, depth + 1) : ScopePlace(), *row);
    slot(scope) = {scope, place};
    return place;
}

ScopePlace ScopePlaces::around(const ScopeRow& row) {
    const ScopePlace outer = row.parent != row.id ? of(row.parent) : ScopePlace();
    slot(row.id) = {row.id, placeInside(outer, row)};
    return outer;
}

std::int32_t layerInName(std::string_view name) {
    constexpr std::string_view kMark = "layers.";
    const std::size_t at = name.find(kMark);
    if (at == std::string_view::npos) {
        return -1;
    }
    std::int32_t layer = -1;
    const std::string_view rest = name.substr(at + kMark.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
    return error == std::errc() ? layer : -1;
}

const ScopeRow* enclosingScope(const RunTimeline& timeline, std::uint64_t scope, base::ScopeKind kind) {
    const ScopeRow* row = timeline.scopes().find(scope);
    for (int depth = 0; row != nullptr && depth < kMaxDepth; ++depth) {
        if (row->kind == kind) {
            return row;
        }
        row = row->parent == row->id ? nullptr : timeline.scopes().find(row->parent);
    }
    return nullptr;
}

base::TimeNs scopeEnd(const RunTimeline& timeline, const ScopeRow& scope) {
    return scope.end < 0 ? timeline.end() : scope.end;
}

const ScopeRow* stepBefore(const RunTimeline& timeline, const ScopeRow& step) {
    const LazyRows<ScopeRow> scopes = timeline.scopes().all();
    std::size_t next = scopesUpTo(timeline, step.begin);
    for (std::size_t looked = 0; next > 0 && looked < kScopesLookedAt; ++looked) {
        const ScopeRow row = scopes[--next];
        if (row.kind == base::ScopeKind::Step && row.name == step.name && row.begin < step.begin) {
            return timeline.scopes().find(row.id);
        }
    }
    return nullptr;
}

std::size_t scopesUpTo(const RunTimeline& timeline, base::TimeNs time) {
    const LazyRows<ScopeRow> scopes = timeline.scopes().all();
    std::size_t low = 0;
    std::size_t high = scopes.size();
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (scopes[middle].begin <= time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

std::vector<ScopeRow> childScopes(const RunTimeline& timeline, std::uint64_t parent, base::ScopeKind kind,
                                  base::TimeNs begin, base::TimeNs end) {
    const LazyRows<ScopeRow> scopes = timeline.scopes().all();
    std::vector<ScopeRow> children;
    for (std::size_t i = scopesUpTo(timeline, begin - 1); i < scopes.size(); ++i) {
        const ScopeRow row = scopes[i];
        if (row.begin > end) {
            break;
        }
        if (row.parent == parent && row.kind == kind) {
            children.push_back(row);
        }
    }
    return children;
}

std::vector<ScopeRow> scopesOfKind(const RunTimeline& timeline, base::ScopeKind kind) {
    std::vector<ScopeRow> found;
    for (const ScopeRow& row : timeline.scopes().all()) {
        if (row.kind == kind) {
            found.push_back(row);
        }
    }
    return found;
}

std::string scopeName(const RunTimeline& timeline, const ScopeRow& scope) {
    if (scope.kind == base::ScopeKind::Step && scope.index >= 0) {
        return fmt::format("step {}", scope.index);
    }
    if (scope.kind == base::ScopeKind::Layer && scope.index >= 0) {
        return fmt::format("layer {}", scope.index);
    }
    return std::string(timeline.text(scope.name));
}

const ScopeRow* scopeAt(const RunTimeline& timeline, base::TimeNs time, base::ScopeKind kind) {
    const auto scopes = timeline.scopes().all();
    std::size_t next = scopesUpTo(timeline, time);
    // Scopes nest: the one that encloses the instant is among the last that began, but layers and ops lie between.
    for (std::size_t looked = 0; next > 0 && looked < 100'000; ++looked) {
        const ScopeRow row = scopes[--next];
        if (row.kind == kind && (row.end < 0 || row.end >= time)) {
            return timeline.scopes().find(row.id);
        }
    }
    return nullptr;
}

std::string scopeTitle(const RunTimeline& timeline, const ScopeRow& scope, bool withTokens) {
    std::string title(timeline.text(scope.name));
    if (title.empty()) {
        title = scope.kind == base::ScopeKind::Step ? "step" : "scope";
    }
    if (scope.index >= 0) {
        title += " " + std::to_string(scope.index);
    }
    if (withTokens && scope.tokens > 0) {
        title += scope.tokens == 1 ? ", 1 token" : ", " + countText(scope.tokens) + " tokens";
    }
    return title;
}

} // namespace vitrine::profiler
