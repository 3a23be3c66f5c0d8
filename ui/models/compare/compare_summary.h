// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between runs: in settings, in results and at the peak of memory. A is the run one looks at, B
// the baseline; arrows compare A with B. Pure functions; any thread.

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

/// Values that differ by less than this share of the larger one count as the same.
inline constexpr double kSameShare = 0.0005;

/// Key, A, B: settings that differ, or all of them.
FlatTreePtr specTable(const sessions::RunInfo& a, const sessions::RunInfo& b, bool changedOnly);

/// Metric, a column for each run, A to B, noise. The first two runs are A and B; `all` are the session's runs, among
/// which repeats of A or B (the same spec) give the noise.
FlatTreePtr metricTable(const std::vector<sessions::RunInfo>& shown, const std::vector<sessions::RunInfo>& all,
                        bool changedOnly);

/// Group, A, B, A to B: bytes at the peak of each run, largest change first. Categories come from the metrics where a
/// timeline is missing.
FlatTreePtr peakTable(const profiler::RunTimeline* a, const profiler::RunTimeline* b, profiler::GroupBy groupBy);

/// true: less is better; false: more is better; nothing: neither. The field's declaration says so.
std::optional<bool> lowerIsBetter(std::string_view metric);
/// Half the spread of a metric over done runs with the spec of `run`, relative to their mean; nothing for a lone run.
std::optional<double> noiseBand(const std::vector<sessions::RunInfo>& all, const sessions::RunInfo& run,
                                const std::string& metric);

/// All of it as Markdown.
QString compareText(const std::vector<sessions::RunInfo>& shown, const std::vector<sessions::RunInfo>& all,
                    const profiler::RunTimeline* a, const profiler::RunTimeline* b);

} // namespace vitrine::ui
