// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/scope_facet.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "profiler/timeline/ordered_search.h"

namespace vitrine::profiler {

namespace {
constexpr int kMaxScopeDepth = 64;
} // namespace

class ScopeFacet::Source final : public RowSource<ScopeRow> {
public:
    Source(const ScopeFacet& scopes, const ScopeRefs& refs) : scopes_(scopes), refs_(refs) {}
    std::size_t rowCount() const override { return refs_.size(); }
    ScopeRow rowAt(std::size_t index) const override { return scopes_.rowOf(refs_[index]); }

private:
    const ScopeFacet& scopes_;
    const ScopeRefs& refs_; ///< of the facet
};

/// What is made when it is first asked for.
struct ScopeFacet::Lazy {
    explicit Lazy(const ScopeFacet& facet)
        : all(facet, facet.parts_.scopes.all), steps(facet, facet.parts_.scopes.steps),
          phases(facet, facet.parts_.scopes.phases) {}

    Source all, steps, phases;
    std::atomic<std::uint64_t> lookups{0};
    std::mutex mutex; ///< of rows
    std::unordered_map<std::uint64_t, std::unique_ptr<const ScopeRow>> rows;
    std::once_flag scopeIdsOnce, replayIdsOnce;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> scopeIds, replayIds;
};

ScopeFacet::ScopeFacet(ScopeParts parts) : parts_(std::move(parts)), lazy_(std::make_unique<Lazy>(*this)) {}

ScopeFacet::~ScopeFacet() = default;

ScopeRow ScopeFacet::rowOf(const ScopeRef& ref) const {
    if (ref.replay == kNoReplay) {
        const ScopeDef& def = parts_.scopes.defs[ref.item];
        const ScopeFinish& finish = parts_.scopes.finishes[ref.item];
        return {def.id,     def.parent, def.kind,   def.name,     def.index,
                def.tokens, def.begin,  finish.end, finish.bytes, finish.flops};
    }
    const ReplayInfo& replay = parts_.replays[ref.replay];
    const TemplateInfo& step = *parts_.templates[replay.step];
    const TemplateInfo::Scope& scope = step.scopes[ref.item];
    const bool root = scope.begin.id.value == 0;
    return {replay.firstId + scope.begin.id.value,
            root ? replay.parent : replay.firstId + scope.begin.parent.value,
            scope.begin.kind,
            scope.begin.name.value,
            root ? replay.index : scope.begin.index,
            scope.begin.tokens,
            expandTime(replay, step.duration, scope.begin.time),
            scope.end < 0 ? replay.end : expandTime(replay, step.duration, scope.end),
            scope.bytes,
            scope.flops};
}

LazyRows<ScopeRow> ScopeFacet::all() const {
    return LazyRows<ScopeRow>(lazy_->all);
}

LazyRows<ScopeRow> ScopeFacet::steps() const {
    return LazyRows<ScopeRow>(lazy_->steps);
}

LazyRows<ScopeRow> ScopeFacet::phases() const {
    return LazyRows<ScopeRow>(lazy_->phases);
}

std::optional<std::uint32_t> ScopeFacet::replayOf(std::uint64_t id) const {
    const auto& replays = parts_.replays;
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
    if (id - replay.firstId >= parts_.templates[replay.step]->idCount) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(found);
}

std::optional<base::MemoryCategory> ScopeFacet::categoryOfOp(std::uint32_t name) const {
    const OpCategories& known = *parts_.scopes.opCategories;
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : std::optional(found->second);
}

std::uint64_t ScopeFacet::lookups() const {
    return lazy_->lookups.load(std::memory_order_relaxed);
}

std::optional<ScopeRef> ScopeFacet::refOf(std::uint64_t id) const {
    lazy_->lookups.fetch_add(1, std::memory_order_relaxed); // a statistic: orders nothing
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
        return ScopeRef{static_cast<std::uint32_t>(found), kNoReplay};
    }
    const auto replay = replayOf(id);
    if (!replay) {
        return std::nullopt;
    }
    const ReplayInfo& info = parts_.replays[*replay];
    const TemplateInfo& step = *parts_.templates[info.step];
    const auto scope = std::ranges::find_if(
        step.scopes, [&](const TemplateInfo::Scope& s) { return info.firstId + s.begin.id.value == id; });
    if (scope == step.scopes.end()) {
        return std::nullopt;
    }
    return ScopeRef{static_cast<std::uint32_t>(std::distance(step.scopes.begin(), scope)), *replay};
}

const ScopeRow* ScopeFacet::find(std::uint64_t id) const {
    const std::lock_guard lock(lazy_->mutex);
    const auto known = lazy_->rows.find(id);
    if (known != lazy_->rows.end()) {
        return known->second.get();
    }
    const std::optional<ScopeRef> ref = refOf(id);
    if (!ref) {
        return nullptr;
    }
    auto& row = lazy_->rows[id];
    row = std::make_unique<const ScopeRow>(rowOf(*ref));
    return row.get();
}

std::optional<ScopeRow> ScopeFacet::row(std::uint64_t id) const {
    const std::optional<ScopeRef> ref = refOf(id);
    return ref ? std::optional(rowOf(*ref)) : std::nullopt;
}

std::string ScopeFacet::path(std::uint64_t id) const {
    std::vector<std::string> parts;
    for (int depth = 0; depth < kMaxScopeDepth; ++depth) {
        const std::optional<ScopeRef> ref = refOf(id);
        if (!ref) {
            break;
        }
        const ScopeRow row = rowOf(*ref);
        if (row.kind == base::ScopeKind::Step && row.index >= 0) {
            parts.push_back(fmt::format("step {}", row.index));
        } else if (row.kind == base::ScopeKind::Layer && row.index >= 0) {
            parts.push_back(fmt::format("layer {}", row.index));
        } else if (row.kind != base::ScopeKind::Run) {
            parts.emplace_back(parts_.names.text(row.name));
        }
        if (row.parent == 0 || row.parent == id) {
            break;
        }
        id = row.parent;
    }
    std::ranges::reverse(parts);
    return fmt::format("{}", fmt::join(parts, " / "));
}

} // namespace vitrine::profiler
