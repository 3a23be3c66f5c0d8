// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The scopes and names of a snapshot.

#include <algorithm>
#include <fmt/format.h>

#include "profiler/timeline/timeline_lazy.h"
#include "profiler/timeline/timeline_snapshot.h"

namespace vitrine::profiler {

namespace {
constexpr int kMaxScopeDepth = 64;
} // namespace

ScopeRow TimelineSnapshot::scopeRow(const ScopeRef& ref) const {
    if (ref.replay == kNoReplay) {
        const ScopeDef& def = parts_.scopes.defs[ref.item];
        const ScopeFinish& finish = parts_.scopes.finishes[ref.item];
        return {def.id,     def.parent, def.kind,   def.name,     def.index,
                def.tokens, def.begin,  finish.end, finish.bytes, finish.flops};
    }
    const ReplayInfo& replay = parts_.history.replays[ref.replay];
    const TemplateInfo& step = *parts_.history.templates[replay.step];
    const TemplateInfo::Scope& scope = step.scopes[ref.item];
    const bool root = scope.begin.id.value == 0;
    return {replay.firstId + scope.begin.id.value,
            root ? replay.parent : replay.firstId + scope.begin.parent.value,
            scope.begin.kind,
            scope.begin.name.value,
            root ? replay.index : scope.begin.index,
            scope.begin.tokens,
            ref.begin,
            scope.end < 0 ? replay.end : expandTime(replay, step.duration, scope.end),
            scope.bytes,
            scope.flops};
}

LazyRows<ScopeRow> TimelineSnapshot::scopes() const {
    return LazyRows<ScopeRow>(lazy_->scopes);
}

LazyRows<ScopeRow> TimelineSnapshot::steps() const {
    return LazyRows<ScopeRow>(lazy_->steps);
}

LazyRows<ScopeRow> TimelineSnapshot::phases() const {
    return LazyRows<ScopeRow>(lazy_->phases);
}

std::optional<std::uint32_t> TimelineSnapshot::replayOf(std::uint64_t id) const {
    const auto& replays = parts_.history.replays;
    std::ptrdiff_t found = -1;
    if (parts_.scopes.replaysRise) {
        found = lastNotAbove(replays.size(), id, [&](std::size_t i) { return replays[i].firstId; });
    } else {
        auto& ids = lazy_->replayIds;
        std::call_once(lazy_->replayIdsOnce, [&] {
            for (std::size_t i = 0; i < replays.size(); ++i) {
                ids.emplace_back(replays[i].firstId, static_cast<std::uint32_t>(i));
            }
            std::ranges::sort(ids);
        });
        found = lastNotAbove(ids.size(), id, [&](std::size_t i) { return ids[i].first; });
        found = found < 0 ? found : static_cast<std::ptrdiff_t>(ids[static_cast<std::size_t>(found)].second);
    }
    if (found < 0) {
        return std::nullopt;
    }
    const ReplayInfo& replay = replays[static_cast<std::size_t>(found)];
    if (id - replay.firstId >= parts_.history.templates[replay.step]->idCount) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(found);
}

std::optional<ScopeRef> TimelineSnapshot::scopeRef(std::uint64_t id) const {
    const auto& defs = parts_.scopes.defs;
    std::ptrdiff_t found = -1;
    if (parts_.scopes.idsRise) {
        found = lastNotAbove(defs.size(), id, [&](std::size_t i) { return defs[i].id; });
    } else {
        auto& ids = lazy_->scopeIds;
        std::call_once(lazy_->scopeIdsOnce, [&] {
            for (std::size_t i = 0; i < defs.size(); ++i) {
                ids.emplace_back(defs[i].id, static_cast<std::uint32_t>(i));
            }
            std::ranges::sort(ids);
        });
        found = lastNotAbove(ids.size(), id, [&](std::size_t i) { return ids[i].first; });
        found = found < 0 ? found : static_cast<std::ptrdiff_t>(ids[static_cast<std::size_t>(found)].second);
    }
    if (found >= 0 && defs[static_cast<std::size_t>(found)].id == id) {
        return ScopeRef{defs[static_cast<std::size_t>(found)].begin, static_cast<std::uint32_t>(found), kNoReplay};
    }
    const auto replay = replayOf(id);
    if (!replay) {
        return std::nullopt;
    }
    const ReplayInfo& info = parts_.history.replays[*replay];
    const TemplateInfo& step = *parts_.history.templates[info.step];
    const auto scope = std::ranges::find_if(
        step.scopes, [&](const TemplateInfo::Scope& s) { return info.firstId + s.begin.id.value == id; });
    if (scope == step.scopes.end()) {
        return std::nullopt;
    }
    return ScopeRef{expandTime(info, step.duration, scope->begin.time),
                    static_cast<std::uint32_t>(std::distance(step.scopes.begin(), scope)), *replay};
}

const ScopeRow* TimelineSnapshot::scope(std::uint64_t id) const {
    const std::lock_guard lock(lazy_->mutex);
    const auto known = lazy_->scopeRows.find(id);
    if (known != lazy_->scopeRows.end()) {
        return known->second.get();
    }
    const std::optional<ScopeRef> ref = scopeRef(id);
    if (!ref) {
        return nullptr;
    }
    auto& row = lazy_->scopeRows[id];
    row = std::make_unique<const ScopeRow>(scopeRow(*ref));
    return row.get();
}

std::optional<ScopeRow> TimelineSnapshot::findScope(std::uint64_t id) const {
    const std::optional<ScopeRef> ref = scopeRef(id);
    return ref ? std::optional(scopeRow(*ref)) : std::nullopt;
}

std::string TimelineSnapshot::scopePath(std::uint64_t id) const {
    std::vector<std::string> parts;
    for (int depth = 0; depth < kMaxScopeDepth; ++depth) {
        const std::optional<ScopeRef> ref = scopeRef(id);
        if (!ref) {
            break;
        }
        const ScopeRow row = scopeRow(*ref);
        if (row.kind == base::ScopeKind::Step && row.index >= 0) {
            parts.push_back(fmt::format("step {}", row.index));
        } else if (row.kind == base::ScopeKind::Layer && row.index >= 0) {
            parts.push_back(fmt::format("layer {}", row.index));
        } else if (row.kind != base::ScopeKind::Run) {
            parts.emplace_back(text(row.name));
        }
        if (row.parent == 0 || row.parent == id) {
            break;
        }
        id = row.parent;
    }
    std::ranges::reverse(parts);
    return fmt::format("{}", fmt::join(parts, " / "));
}

std::string_view TimelineSnapshot::text(std::uint32_t name) const {
    const auto found = parts_.strings->find(name);
    return found == parts_.strings->end() ? std::string_view() : std::string_view(found->second);
}

} // namespace vitrine::profiler
