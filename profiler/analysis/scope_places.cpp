// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/scope_places.h"

#include <charconv>
#include <fmt/format.h>

namespace vitrine::profiler {

namespace {
constexpr int kMaxDepth = 64;
constexpr std::size_t kScopesLookedAt = 200'000;
} // namespace

const ScopePlace& ScopePlaces::of(std::uint64_t scope) {
    if (const auto known = known_.find(scope); known != known_.end()) {
        return known->second;
    }
    ScopePlace place;
    std::uint64_t id = scope;
    for (int depth = 0; depth < kMaxDepth; ++depth) {
        const ScopeRow* const row = timeline_.scope(id);
        if (row == nullptr) {
            break;
        }
        switch (row->kind) {
        case base::ScopeKind::Op:
            place.op = place.op == 0 ? row->name : place.op;
            break;
        case base::ScopeKind::Layer:
            place.layer = place.layer < 0 ? row->index : place.layer;
            break;
        case base::ScopeKind::Step:
            place.step = place.stepScope == 0 ? row->index : place.step;
            place.stepScope = place.stepScope == 0 ? id : place.stepScope;
            break;
        case base::ScopeKind::Phase:
            place.phase = place.phaseScope == 0 ? row->name : place.phase;
            place.phaseScope = place.phaseScope == 0 ? id : place.phaseScope;
            break;
        case base::ScopeKind::Run:
            break;
        }
        if (row->parent == 0 || row->parent == id) {
            break;
        }
        id = row->parent;
    }
    return known_.emplace(scope, place).first->second;
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

const ScopeRow* enclosingScope(const MemoryTimeline& timeline, std::uint64_t scope, base::ScopeKind kind) {
    const ScopeRow* row = timeline.scope(scope);
    for (int depth = 0; row != nullptr && depth < kMaxDepth; ++depth) {
        if (row->kind == kind) {
            return row;
        }
        row = row->parent == row->id ? nullptr : timeline.scope(row->parent);
    }
    return nullptr;
}

base::TimeNs scopeEnd(const MemoryTimeline& timeline, const ScopeRow& scope) {
    return scope.end < 0 ? timeline.end() : scope.end;
}

const ScopeRow* stepBefore(const MemoryTimeline& timeline, const ScopeRow& step) {
    const LazyRows<ScopeRow> scopes = timeline.scopes();
    std::size_t next = scopesUpTo(timeline, step.begin);
    for (std::size_t looked = 0; next > 0 && looked < kScopesLookedAt; ++looked) {
        const ScopeRow row = scopes[--next];
        if (row.kind == base::ScopeKind::Step && row.name == step.name && row.begin < step.begin) {
            return timeline.scope(row.id);
        }
    }
    return nullptr;
}

std::size_t scopesUpTo(const MemoryTimeline& timeline, base::TimeNs time) {
    const LazyRows<ScopeRow> scopes = timeline.scopes();
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

std::vector<ScopeRow> childScopes(const MemoryTimeline& timeline, std::uint64_t parent, base::ScopeKind kind,
                                  base::TimeNs begin, base::TimeNs end) {
    const LazyRows<ScopeRow> scopes = timeline.scopes();
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

std::vector<ScopeRow> scopesOfKind(const MemoryTimeline& timeline, base::ScopeKind kind) {
    std::vector<ScopeRow> found;
    for (const ScopeRow& row : timeline.scopes()) {
        if (row.kind == kind) {
            found.push_back(row);
        }
    }
    return found;
}

std::string scopeName(const MemoryTimeline& timeline, const ScopeRow& scope) {
    if (scope.kind == base::ScopeKind::Step && scope.index >= 0) {
        return fmt::format("step {}", scope.index);
    }
    if (scope.kind == base::ScopeKind::Layer && scope.index >= 0) {
        return fmt::format("layer {}", scope.index);
    }
    return std::string(timeline.text(scope.name));
}

} // namespace vitrine::profiler
