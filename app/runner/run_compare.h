// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What changed between two runs: settings, results, and memory phase by phase.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/workload/experiment.h"
#include "profiler/memory_timeline.h"
#include "sessions/session_file.h"

namespace vitrine::app {

/// The largest total of both runs in one phase ("load", "prefill", "decode"; the second of a name is "decode 2").
struct MemoryStep {
    std::string label;
    std::optional<double> a, b; ///< bytes; unset when that run has no such phase
};

struct RunComparison {
    std::vector<engine::SpecDifference> spec;
    std::vector<sessions::MetricDifference> metrics;
    std::vector<MemoryStep> memory; ///< in the order of run a, then what only b has
};

/// Throws BadInput when a file lacks the run or holds damaged chunks.
RunComparison compareRuns(const sessions::SessionFile& first, sessions::RunId a, const sessions::SessionFile& second,
                          sessions::RunId b);

/// The memory of a saved run, from all its chunks.
std::shared_ptr<const profiler::MemoryTimeline> loadTimeline(const sessions::SessionFile& session, sessions::RunId run);

} // namespace vitrine::app
