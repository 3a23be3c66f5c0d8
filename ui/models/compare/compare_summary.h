// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between runs: in settings, in surroundings, in results and at the peak of memory. Changes are B − A.
// Pure functions; any thread.

#include <QString>
#include <optional>
#include <vector>

#include "profiler/analysis/timeline_align.h"
#include "profiler/timeline/timeline_rows.h"
#include "sessions/session_file.h"
#include "ui/models/common/flat_tree.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// Key, A, B: settings that differ, or all of them, and below them the measured surroundings that differ.
FlatTreePtr specTable(const sessions::RunInfo& a, const sessions::RunInfo& b, bool changedOnly);

/// Metric, a column for each run, B − A, noise. The first two runs are A and B; `all` are the session's runs, among
/// which repeats of A or B give the noise. `changes` false leaves B − A and the noise out, for runs that cannot be
/// compared.
FlatTreePtr metricTable(const std::vector<sessions::RunInfo>& shown, const std::vector<sessions::RunInfo>& all,
                        bool changedOnly, bool changes = true);

/// Group, A, B, B − A: bytes at the peak of each run, largest change first.
FlatTreePtr peakTable(const profiler::RunTimeline* a, const profiler::RunTimeline* b, profiler::GroupBy groupBy);

/// All of it as Markdown.
QString compareText(const std::vector<sessions::RunInfo>& shown, const std::vector<sessions::RunInfo>& all,
                    const profiler::RunTimeline* a, const profiler::RunTimeline* b);

} // namespace vitrine::ui
