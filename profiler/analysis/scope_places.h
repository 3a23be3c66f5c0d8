// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "profiler/timeline/timeline_rows.h"

// Where in a run a scope stands: its phase, step, layer and op.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::profiler {

class RunTimeline;

struct ScopePlace {
    std::int32_t step = -1;                      ///< number of the step, -1: none
    std::int32_t layer = -1;                     ///< number of the layer, -1: none
    std::uint64_t stepScope = 0, phaseScope = 0; ///< innermost phase; 0: none
    std::uint32_t op = 0;                        ///< name of the innermost op, 0: none
    std::uint32_t phase = 0;                     ///< name of the innermost phase, 0: none
};

/// The place of a scope that stands directly inside `outer`.
ScopePlace placeInside(ScopePlace outer, const ScopeRow& row);

/// Looks places up. Remembers the last ones only, so that a walk over the millions of scopes of a long run in their
/// order costs neither a search nor memory for each. One thread; borrows the timeline.
class ScopePlaces {
public:
    explicit ScopePlaces(const RunTimeline& timeline) : timeline_(timeline), known_(kKnown) {}
    ScopePlace of(std::uint64_t scope);
    /// The place of a row's parent. A walk that asks about every row in the order of begins searches for none of them.
    ScopePlace around(const ScopeRow& row);

private:
    static constexpr std::size_t kKnown = 1024;
    struct Known {
        std::uint64_t scope = 0; ///< 0: free, no scope has this id
        ScopePlace place;
    };
    Known& slot(std::uint64_t scope);
    ScopePlace at(std::uint64_t scope, int depth);

    const RunTimeline& timeline_;
    std::vector<Known> known_;
};

/// The N of "layers.N." in a tensor's name, -1 without.
std::int32_t layerInName(std::string_view name);

/// The innermost scope of a kind that is `scope` or encloses it; null: none.
const ScopeRow* enclosingScope(const RunTimeline& timeline, std::uint64_t scope, base::ScopeKind kind);

/// When a scope ended; the timeline's end for one that is still open.
base::TimeNs scopeEnd(const RunTimeline& timeline, const ScopeRow& scope);

/// The latest step of the same kind (the same name: a prefill step before a prefill step) that began before this one;
/// null when there is none among the last 200,000 scopes before it.
const ScopeRow* stepBefore(const RunTimeline& timeline, const ScopeRow& step);

/// Index of the first scope that begins after `time`.
std::size_t scopesUpTo(const RunTimeline& timeline, base::TimeNs time);

/// Children of a scope with this kind that begin in [begin, end], by begin.
std::vector<ScopeRow> childScopes(const RunTimeline& timeline, std::uint64_t parent, base::ScopeKind kind,
                                  base::TimeNs begin, base::TimeNs end);

/// All scopes of a kind, by begin.
std::vector<ScopeRow> scopesOfKind(const RunTimeline& timeline, base::ScopeKind kind);

/// "step 3", "layer 11", "prefill"; the name where there is no number.
std::string scopeName(const RunTimeline& timeline, const ScopeRow& scope);

/// The scope of a kind that encloses an instant, such as its step; null: none.
const ScopeRow* scopeAt(const RunTimeline& timeline, base::TimeNs time, base::ScopeKind kind);

/// "step 3", "step 3, 98,304 tokens", "prefill", "layer 11"
std::string scopeTitle(const RunTimeline& timeline, const ScopeRow& scope, bool withTokens);

} // namespace vitrine::profiler
