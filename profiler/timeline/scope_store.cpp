// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/scope_store.h"

#include <algorithm>
#include <utility>

namespace vitrine::profiler {

void ScopeStore::addBegins(const std::vector<base::ScopeBeginEvent>& events) {
    for (const base::ScopeBeginEvent& event : events) {
        const auto index = static_cast<std::uint32_t>(defs_.size());
        idsRise_ = idsRise_ && (defs_.empty() || defs_.back().id < event.id.value);
        defs_.push(
            {event.id.value, event.parent.value, event.time, event.tokens, event.name.value, event.index, event.kind});
        finishes_.push({});
        const ScopeRef ref{index, kNoReplay};
        all_.add(ref);
        addByKind(event.kind, ref);
        noteCategory(event);
        latest_ = std::max(latest_, event.time);
        if (const auto end = early_.take(event.id.value)) {
            finishes_.writable(index) = *end;
        } else {
            open_.put(event.id.value, index);
        }
    }
}

void ScopeStore::addEnds(const std::vector<base::ScopeEndEvent>& events) {
    for (const base::ScopeEndEvent& event : events) {
        const ScopeFinish finish{event.time, event.bytes, event.flops};
        latest_ = std::max(latest_, event.time);
        if (const auto index = open_.take(event.id.value)) {
            finishes_.writable(*index) = finish;
        } else {
            early_.put(event.id.value, finish);
        }
    }
}

void ScopeStore::noteCategory(const base::ScopeBeginEvent& begin) {
    if (begin.kind != base::ScopeKind::Op || begin.category == base::MemoryCategory::Other ||
        opCategories_->contains(begin.name.value)) {
        return;
    }
    auto more = std::make_shared<OpCategories>(*opCategories_);
    more->emplace(begin.name.value, begin.category);
    opCategories_ = std::move(more);
}

void ScopeStore::addReplay(std::uint32_t index, const ReplayInfo& replay, const TemplateInfo& step) {
    const bool fresh = notedTemplates_.insert(step.id).second;
    const bool inPlace = step.scopesRise && replay.begin <= replay.end && !step.scopes.empty();
    if (inPlace) {
        all_.addReplay(index, step.scopes.size());
    }
    for (std::size_t item = 0; item < step.scopes.size(); ++item) {
        const base::ScopeBeginEvent& begin = step.scopes[item].begin;
        const ScopeRef ref{static_cast<std::uint32_t>(item), index};
        if (!inPlace) {
            all_.add(ref);
        }
        addByKind(begin.kind, ref);
        if (fresh) {
            noteCategory(begin);
        }
    }
    replaysRise_ = replaysRise_ && (index == 0 || lastReplayId_ < replay.firstId);
    lastReplayId_ = replay.firstId;
    latest_ = std::max(latest_, replay.end);
}

void ScopeStore::addByKind(base::ScopeKind kind, const ScopeRef& ref) {
    if (kind == base::ScopeKind::Step) {
        steps_.add(ref);
    } else if (kind == base::ScopeKind::Phase) {
        phases_.add(ref);
    }
}

ScopeViews ScopeStore::views(const MemoryHistory& history) {
    const auto beginOf = [&](const ScopeRef& ref) {
        if (ref.replay == kNoReplay) {
            return defs_[ref.item].begin;
        }
        const ReplayInfo& replay = history.replay(ref.replay);
        const TemplateInfo& step = history.templateOf(replay);
        return expandTime(replay, step.duration, step.scopes[ref.item].begin.time);
    };
    return {defs_.view(),          finishes_.view(), all_.view(beginOf), steps_.view(beginOf),
            phases_.view(beginOf), idsRise_,         replaysRise_,       opCategories_};
}

} // namespace vitrine::profiler
