// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between two runs: settings, results, and memory phase by phase.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/experiment/experiment.h"
#include "sessions/metric_difference.h"
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

struct MemoryComparison {
    std::string sentence; ///< "A uses 61.9 GiB less at its peak"; empty when a run recorded no memory
    std::vector<MemoryChange> phases;
};

struct RunComparison {
    std::vector<engine::SpecDifference> spec;
    std::vector<sessions::MetricDifference> metrics;
    MemoryComparison memory;
};

/// Throws BadInput when a file lacks the run or holds damaged chunks.
RunComparison compareRuns(const sessions::SessionFile& first, sessions::RunId a, const sessions::SessionFile& second,
                          sessions::RunId b);

/// The memory of a saved run, from all its chunks.
std::shared_ptr<const profiler::RunTimeline> loadTimeline(const sessions::SessionFile& session, sessions::RunId run);

} // namespace vitrine::app
