// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which scope launched which work.
//
// Launching threads note (correlation id of the call, scope) and, while a graph is captured, (node, scope). Records of
// the device come later and are asked for by correlation id and node. Steps may be reported in the trace under other
// ids than they ran with (base::StepScope), so an answer waits for the end of the step. Replays have the trace's ids
// from the start, so theirs are known at once, whatever else is under way. A node's scope is kept relative to its step:
// work of a replayed graph belongs to the replay's first id plus that. Thread-safe.

#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/trace.h"

namespace vitrine::profiler {

class LaunchMap {
public:
    LaunchMap();

    /// Forgets steps and launches of the run before; graphs and their nodes live on.
    void beginRun();

    void stepBegins(base::ScopeId step);
    void stepEnded(base::ScopeId step, std::span<const base::StepScope> scopes);

    void launched(std::uint32_t correlation, base::ScopeId scope);
    /// A node came to life while `scope` was at work.
    void nodeCreated(std::uint64_t node, base::ScopeId scope);
    /// Instantiating a graph clones its nodes.
    void nodeCloned(std::uint64_t original, std::uint64_t clone);
    void nodeDestroyed(std::uint64_t node);

    /// The scope in the trace; 0: not known. None while the step that launched it has not ended.
    std::optional<base::ScopeId> scopeOf(std::uint32_t correlation, std::uint64_t node) const;

private:
    struct Launch {
        std::uint32_t correlation = 0;
        base::ScopeId scope;
    };
    struct Node {
        base::ScopeId scope;                   ///< as the capture ran
        std::optional<std::uint64_t> relative; ///< to the step; known when the capturing step has ended
    };
    /// A step that was reported under other ids.
    struct Renamed {
        std::uint64_t first = 0, last = 0; ///< ids as it ran
        std::vector<base::StepScope> scopes;
    };

    base::ScopeId idInTrace(base::ScopeId ran) const;

    mutable std::mutex mutex_;
    std::vector<Launch> launches_; ///< a ring by correlation id
    std::unordered_map<std::uint64_t, Node> nodes_;
    std::deque<std::uint64_t> destroyed_;                            ///< nodes to forget, oldest first
    std::vector<std::uint64_t> newNodes_;                            ///< of the step that is open
    std::deque<Renamed> renamed_;                                    ///< by first
    std::uint64_t open_ = std::numeric_limits<std::uint64_t>::max(); ///< ids from here on belong to the open step
};

} // namespace vitrine::profiler
