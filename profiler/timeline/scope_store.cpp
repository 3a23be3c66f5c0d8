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
        add(event.kind, {event.time, index, kNoReplay});
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
    for (std::size_t item = 0; item < step.scopes.size(); ++item) {
        const base::ScopeBeginEvent& begin = step.scopes[item].begin;
        add(begin.kind, {expandTime(replay, step.duration, begin.time), static_cast<std::uint32_t>(item), index});
        if (fresh) {
            noteCategory(begin);
        }
    }
    replaysRise_ = replaysRise_ && (index == 0 || lastReplayId_ < replay.firstId);
    lastReplayId_ = replay.firstId;
    latest_ = std::max(latest_, replay.end);
}

void ScopeStore::add(base::ScopeKind kind, const ScopeRef& ref) {
    all_.add(ref);
    if (kind == base::ScopeKind::Step) {
        steps_.add(ref);
    } else if (kind == base::ScopeKind::Phase) {
        phases_.add(ref);
    }
}

ScopeRefs::View ScopeOrder::view() {
    const auto earlier = [](const ScopeRef& a, const ScopeRef& b) { return a.begin < b.begin; };
    std::stable_sort(waiting_.begin(), waiting_.end(), earlier);
    std::vector<ScopeRef> again;
    while (!waiting_.empty() && !refs_.empty() && earlier(waiting_.front(), refs_.back())) {
        again.push_back(refs_.back());
        refs_.truncate(refs_.size() - 1);
    }
    std::ranges::reverse(again);
    std::vector<ScopeRef> all(again.size() + waiting_.size());
    std::ranges::merge(again, waiting_, all.begin(), earlier);
    for (const ScopeRef& ref : all) {
        refs_.push(ref);
    }
    waiting_.clear();
    return refs_.view();
}

ScopeViews ScopeStore::views() {
    return {defs_.view(),   finishes_.view(), all_.view(),  steps_.view(),
            phases_.view(), idsRise_,         replaysRise_, opCategories_};
}

} // namespace vitrine::profiler
