// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The page Why out of memory as one table: its twin for those who read or copy rows. Pure function; any thread.

#include <vector>

#include "ui/models/memory/fit_changes.h"
#include "ui/models/memory/oom_summary.h"

namespace vitrine::ui {

/// Part, What, Bytes, and what is said of it: the request, what held the memory, what changed, what would have fitted.
/// `changes` are those that the page shows.
FlatTreePtr oomTable(const profiler::RunTimeline& timeline, const OomSummary& facts, profiler::GroupBy groupBy,
                     const std::vector<FitChange>& changes);

} // namespace vitrine::ui
