// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_compare.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/runner/recording/stored_timeline.h"
#include "base/json_values.h"
#include "engine/workload/experiment/stored_files.h"
#include "profiler/analysis/timeline_align.h"
#include "profiler/timeline/memory_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::app {

namespace {

std::optional<double> peakIn(const profiler::RunTimeline& timeline,
                             const std::optional<profiler::TimeStretch>& stretch) {
    if (!stretch) {
        return std::nullopt;
    }
    // The last instant counts: what a phase leaves allocated belongs to it.
    return static_cast<double>(timeline.memory().peak(stretch->begin, stretch->end + 1).maxTotal);
}

std::vector<MemoryChange> comparePhases(const profiler::RunTimeline& a, const profiler::RunTimeline& b) {
    std::vector<MemoryChange> phases;
    if (a.memory().events() == 0 || b.memory().events() == 0) {
        return phases;
    }
    const profiler::Alignment alignment = profiler::align(a, b, profiler::AlignBy::Phase);
    for (const profiler::AlignedSegment& segment : alignment.segments()) {
        if (!segment.name.empty()) {
            phases.push_back({segment.name, peakIn(a, segment.a), peakIn(b, segment.b)});
        }
    }
    return phases;
}

/// `session` is the path of its file, beside which its model may lie.
engine::ComparedRun comparedRun(const sessions::RunInfo& run, const std::string& session) {
    const engine::StoredPlaces places{base::textIn(run.environmentJson, "working_directory"),
                                      std::filesystem::absolute(session).parent_path().string(),
                                      {}};
    return {run.id,
            run.specJson,
            run.environmentJson,
            run.metricsJson,
            run.status == sessions::RunStatus::Done,
            run.status == sessions::RunStatus::OutOfMemory,
            std::string(sessions::runStatusName(run.status)),
            engine::findStoredFiles(run.specJson, places).experiment};
}

} // namespace

RunComparison compareRuns(const sessions::SessionFile& first, sessions::RunId a, const sessions::SessionFile& second,
                          sessions::RunId b) {
    RunComparison comparison;
    comparison.a = comparedRun(first.run(a), first.path());
    comparison.b = comparedRun(second.run(b), second.path());
    std::vector<engine::ComparedRun> all;
    for (const sessions::SessionFile* session : {&first, &second}) {
        for (const sessions::RunInfo& run : session->runs()) {
            all.push_back(comparedRun(run, session->path()));
        }
        if (first.path() == second.path()) {
            break; // one file, whose runs would be repeats of themselves
        }
    }
    comparison.results = engine::compareResults(comparison.a, comparison.b, all);
    comparison.words = engine::comparisonWords(comparison.a, comparison.b, comparison.results);
    comparison.notComparable = engine::incomparableSentence(comparison.a, comparison.b);
    comparison.spec = engine::diffSettings(comparison.a, comparison.b);
    comparison.surroundings = engine::diffSurroundings(comparison.a, comparison.b);
    const auto left = loadTimeline(first, a), right = loadTimeline(second, b);
    comparison.phases = comparePhases(*left, *right);
    comparison.losses = profiler::lossSentence(*left, *right);
    return comparison;
}

} // namespace vitrine::app
