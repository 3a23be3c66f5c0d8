// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The scopes of a run by begin, those of replayed steps expanded. Begins and ends may come in any order. Not
// thread-safe; the views are immutable.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/trace.h"
#include "profiler/record/id_map.h"
#include "profiler/record/segmented_vector.h"
#include "profiler/timeline/history.h"
#include "profiler/timeline/scope_order.h"

namespace vitrine::profiler {

struct ScopeDef {
    std::uint64_t id = 0, parent = 0;
    base::TimeNs begin = 0;
    std::int64_t tokens = 0;
    std::uint32_t name = 0;
    std::int32_t index = -1;
    base::ScopeKind kind = base::ScopeKind::Op;
};

struct ScopeFinish {
    base::TimeNs end = -1;
    std::uint64_t bytes = 0, flops = 0;
};

/// What the ops of each name mostly write, by the name's number.
using OpCategories = std::map<std::uint32_t, base::MemoryCategory>;

struct ScopeViews {
    BlockView<ScopeDef, 512> defs;
    BlockView<ScopeFinish, 256> finishes;
    ScopeRefs all, steps, phases;
    bool idsRise = true;     ///< ids of defs rise with their index
    bool replaysRise = true; ///< first ids of replays rise with their index
    std::shared_ptr<const OpCategories> opCategories;
};

class ScopeStore {
public:
    void addBegins(const std::vector<base::ScopeBeginEvent>& events);
    void addEnds(const std::vector<base::ScopeEndEvent>& events);
    void addReplay(std::uint32_t index, const ReplayInfo& replay, const TemplateInfo& step);

    base::TimeNs latest() const { return latest_; }
    /// `history` knows the replays that were added.
    ScopeViews views(const MemoryHistory& history);

private:
    void addByKind(base::ScopeKind kind, const ScopeRef& ref);
    void noteCategory(const base::ScopeBeginEvent& begin);

    SegmentedVector<ScopeDef, 512> defs_;
    SegmentedVector<ScopeFinish, 256> finishes_;
    ScopeOrder all_, steps_, phases_;
    IdMap<std::uint32_t> open_; ///< id to def
    IdMap<ScopeFinish> early_;  ///< ends whose begin has not come
    /// Replaced when a new name comes, for views keep the old one.
    std::shared_ptr<const OpCategories> opCategories_ = std::make_shared<OpCategories>();
    std::set<std::uint32_t> notedTemplates_; ///< whose ops are among the categories
    bool idsRise_ = true, replaysRise_ = true;
    std::uint64_t lastReplayId_ = 0;
    base::TimeNs latest_ = 0;
};

} // namespace vitrine::profiler
