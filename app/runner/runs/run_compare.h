// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between two runs: settings, results, and memory phase by phase.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/experiment/comparison_words.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/run_comparison.h"
#include "sessions/session_file.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::app {

/// The largest total of both runs in one phase ("load", "prefill", "decode") of the common axis.
struct MemoryChange {
    std::string label;
    std::optional<double> a, b; ///< bytes; unset when that run has no such phase
};

struct RunComparison {
    engine::ComparedRun a, b;
    engine::ComparisonWords words;
    std::string notComparable; ///< one sentence; empty when everything may be compared
    std::vector<engine::SpecDifference> spec;
    std::vector<engine::SurroundingDifference> surroundings;
    std::vector<engine::ResultChange> results; ///< judged with the repeats that both files hold
    std::string losses;                        ///< whose peaks are uncertain; empty when both are certain
    std::vector<MemoryChange> phases;          ///< empty when a run recorded no memory
};

/// Throws BadInput when a file lacks the run or holds damaged chunks.
RunComparison compareRuns(const sessions::SessionFile& first, sessions::RunId a, const sessions::SessionFile& second,
                          sessions::RunId b);

} // namespace vitrine::app
