// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why a run went out of memory, as sentences and tables. Pure functions over an immutable timeline; any thread.

#include "profiler/memory_timeline.h"
#include "ui/models/flat_tree.h"

namespace vitrine::ui {

struct OomFacts {
    base::OutOfMemoryEvent event;
    std::size_t failure = 0; ///< its number in the run
    QString asker;           ///< "Step 3", "The load"
    QString tensor;          ///< "grad_logits"
    QString cause;           ///< second line: how much too large, fragmentation, phase and op
    std::uint64_t free = 0;
    std::uint64_t missing = 0;
    std::uint64_t unused = 0; ///< reserved by the allocator, held by nobody
    double fragmentation = 0; ///< 0: the free memory was one block
    base::CategoryBytes held{};
    const profiler::ScopeRow* step = nullptr;
    const profiler::ScopeRow* before = nullptr; ///< the step before it, as far as that stage of the failure goes
    base::TimeNs beforeTime = 0;                ///< the instant in `before` to compare with
};

OomFacts oomFacts(const profiler::MemoryTimeline& timeline, std::size_t failure);

/// Holder, Size, Share, bar: by category, layer or op, two levels.
FlatTreePtr holdersTree(const profiler::MemoryTimeline& timeline, const OomFacts& facts, profiler::GroupBy groupBy);

/// GiB (or the unit that fits) by category in the step before and at the failure, with the change. Null without a step
/// to compare with.
FlatTreePtr changeTable(const profiler::MemoryTimeline& timeline, const OomFacts& facts);

/// The whole page as text for an issue or a mail.
QString oomText(const profiler::MemoryTimeline& timeline, const OomFacts& facts);

} // namespace vitrine::ui
