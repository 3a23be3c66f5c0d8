// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Why a run went out of memory, as sentences and tables. Pure functions over an immutable timeline; any thread.

#include "profiler/analysis/oom_report.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::ui {

/// The report with its words.
struct OomSummary : profiler::OomReport {
    QString asker;  ///< "Step 3", "The load"
    QString tensor; ///< "grad_logits"
    QString cause;  ///< second line: how much too large, fragmentation, phase and op
};

/// Without a failure of that number: a report of nothing.
OomSummary oomSummary(const profiler::RunTimeline& timeline, std::size_t failure);

/// Holder, Size, Share, bar: by category, layer or op, two levels.
FlatTreePtr holdersTree(const profiler::RunTimeline& timeline, const OomSummary& facts, profiler::GroupBy groupBy);

/// GiB (or the unit that fits) by category in the step before and at the failure, with the change. Null without a step
/// to compare with.
FlatTreePtr changeTable(const profiler::RunTimeline& timeline, const OomSummary& facts);

/// The whole page as text for an issue or a mail.
QString oomText(const profiler::RunTimeline& timeline, const OomSummary& facts);

} // namespace vitrine::ui
