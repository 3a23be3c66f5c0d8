// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why a run went out of memory, as sentences and tables. Pure functions over an immutable timeline; any thread.

#include "profiler/analysis/oom_report.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

/// The report with its words.
struct OomSummary : profiler::OomReport {
    QString asker;  ///< "Step 3", "Phase load"
    QString tensor; ///< "grad_logits"
    QString cause;  ///< second line: how much too large, who has the rest, fragmentation, and where in the run
    QString arena;  ///< "arena of the prefill step": who reserved what lies idle; empty: nobody
    QString since;  ///< "step 2", "the beginning of load": what it is compared with
};

/// Without a failure of that number: a report of nothing.
OomSummary oomSummary(const profiler::RunTimeline& timeline, std::size_t failure);

/// "prefill arena, idle"
QString idleText(const OomSummary& facts);

/// Holder, Size, Share, bar: by category, layer or op, two levels. What is reserved and in no tensor has rows too, so
/// that the total is what was held of the budget.
FlatTreePtr holdersTree(const profiler::RunTimeline& timeline, const OomSummary& facts, profiler::GroupBy groupBy);

/// GiB (or the unit that fits) by category at the instant to compare with and at the failure, with the change.
FlatTreePtr changeTable(const profiler::RunTimeline& timeline, const OomSummary& facts);

/// The whole page as text for an issue or a mail.
QString oomText(const profiler::RunTimeline& timeline, const OomSummary& facts);

} // namespace vitrine::ui
