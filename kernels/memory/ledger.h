// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Counts one memory space: the allocations that are alive, by category, and the exact peak. Feeds statistics, the trace
// and the sentence of an out-of-memory error. Used by one thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "kernels/core/tracer.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

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

    Tracer& tracer_;
    base::MemorySpace space_;
    MemoryStatistics statistics_;
    StepMemory step_;
    base::CategoryBytes stepBase_{}; ///< what was alive when the step began
    std::uint64_t stepBaseTotal_ = 0;
    std::unordered_map<void*, Live> live_;
};

/// The layer in a tensor's name, "model.layers.3.mlp": 3; -1 where there is none.
std::int32_t layerOfName(std::string_view name);

} // namespace vitrine::kernels
