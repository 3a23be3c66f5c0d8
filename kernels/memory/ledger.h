// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Counts one memory space: the allocations that are alive, by category, and the exact peak. Feeds statistics, the trace
// and the sentence of an out-of-memory error. Used by one thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/core/tracer.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// A reservation for one purpose and what tensors have of it.
struct ArenaUse {
    std::string name; ///< "arena of the prefill step"
    std::uint64_t bytes = 0;
    std::uint64_t used = 0;
};

class Ledger {
public:
    Ledger(Tracer& tracer, base::MemorySpace space) : tracer_(tracer), space_(space) {}

    /// Bytes that exist before the first tensor: context and libraries.
    void addUntracked(std::uint64_t bytes);

    void allocated(void* address, std::uint64_t bytes, const Tag& tag);
    void freed(void* address) noexcept;
    void reserved(std::int64_t change);

    /// Starts counting a step, in addition to the run.
    void beginStep();
    const StepMemory& stepMemory() const { return step_; }
    void repeatStep(const StepMemory& step);

    const MemoryStatistics& statistics() const { return statistics_; }
    void restartWindow() { statistics_.windowPeak = statistics_.current; }

    /// An arena that a failure asks how much of it is idle, until it is removed.
    void addArena(const void* arena, std::function<ArenaUse()> use) { arenas_[arena] = std::move(use); }
    void removeArena(const void* arena) noexcept { arenas_.erase(arena); }
    /// "arena of the prefill step", by the step that goes on.
    std::string stepArenaName() const;

    /// Reports a request that failed to the trace and returns the error to throw.
    base::OutOfMemory failure(std::uint64_t requested, const Tag& tag, std::uint64_t budget, std::uint64_t largestFree);

private:
    struct Live {
        std::uint64_t id = 0;
        std::uint64_t bytes = 0;
        base::MemoryCategory category = base::MemoryCategory::Other;
        std::int32_t layer = -1;
    };

    void add(base::MemoryCategory category, std::uint64_t bytes);
    /// Enters the arenas that are not full. Returns their idle bytes.
    std::uint64_t addIdleArenas(base::OutOfMemoryDetails& details) const;

    Tracer& tracer_;
    base::MemorySpace space_;
    MemoryStatistics statistics_;
    StepMemory step_;
    base::CategoryBytes stepBase_{}; ///< what was alive when the step began
    std::uint64_t stepBaseTotal_ = 0;
    std::unordered_map<void*, Live> live_;
    std::unordered_map<const void*, std::function<ArenaUse()>> arenas_;
};

/// The layer in a tensor's name, "model.layers.3.mlp": 3; -1 where there is none.
std::int32_t layerOfName(std::string_view name);

} // namespace vitrine::kernels
