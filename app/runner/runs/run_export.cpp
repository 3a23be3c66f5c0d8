// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_export.h"

#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "app/runner/recording/stored_timeline.h"
#include "app/runner/runs/run_compare.h"
#include "base/error.h"
#include "base/output_file.h"
#include "profiler/export/chrome_trace.h"
#include "profiler/export/csv.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Pieces of the run in memory.csv.
constexpr int kTotalsRows = 2000;

base::TimeBase timeBaseOf(const sessions::RunInfo& run) {
    const json environment = json::parse(run.environmentJson, nullptr, false);
    const bool isVirtual = environment.is_object() && environment.value("time_base", json()) == "virtual";
    return isVirtual ? base::TimeBase::Virtual : base::TimeBase::Monotonic;
}

} // namespace

std::vector<std::string> exportCsv(const sessions::SessionFile& session, sessions::RunId run,
                                   const std::string& folder) {
    const sessions::RunInfo info = session.run(run);
    const auto timeline = loadTimeline(session, info.id);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!std::filesystem::is_directory(folder, error)) {
        throw base::BadInput(fmt::format("{}: the folder cannot be made; name another with --output", folder));
    }
    using Writer = std::function<void(std::ostream&)>;
    std::vector<std::pair<const char*, Writer>> tables{
        {"allocations.csv", [&](std::ostream& out) { profiler::writeAllocationsCsv(*timeline, out); }},
        {"scopes.csv", [&](std::ostream& out) { profiler::writeScopesCsv(*timeline, out); }},
        {"counters.csv", [&](std::ostream& out) { profiler::writeCountersCsv(*timeline, out); }},
        {"spans.csv", [&](std::ostream& out) { profiler::writeSpansCsv(*timeline, out); }},
        {"kernels.csv", [&](std::ostream& out) { profiler::writeKernelsCsv(*timeline, out); }},
        {"batch_steps.csv", [&](std::ostream& out) { profiler::writeBatchStepsCsv(*timeline, out); }},
        {"batch_slots.csv", [&](std::ostream& out) { profiler::writeBatchSlotsCsv(*timeline, out); }},
        {"batch_requests.csv", [&](std::ostream& out) { profiler::writeBatchRequestsCsv(*timeline, out); }},
        {"kv_pages.csv", [&](std::ostream& out) { profiler::writeKvPagesCsv(*timeline, out); }},
        {"memory.csv", [&](std::ostream& out) { profiler::writeTotalsCsv(*timeline, kTotalsRows, out); }},
    };
    if (!timeline->gaps().all().empty()) {
        tables.emplace_back("gaps.csv", [&](std::ostream& out) { profiler::writeGapsCsv(*timeline, out); });
    }
    std::vector<std::string> files;
    for (const auto& table : tables) {
        files.push_back((std::filesystem::path(folder) / table.first).string());
        base::requireReplaceable(files.back(), base::kTableOutput);
    }
    for (std::size_t i = 0; i < tables.size(); ++i) {
        base::writeOutput(files[i], tables[i].second);
    }
    return files;
}

void exportChromeTrace(const sessions::SessionFile& session, sessions::RunId run, const std::string& file,
                       bool allocations) {
    const sessions::RunInfo info = session.run(run);
    const auto timeline = loadTimeline(session, info.id);
    profiler::ChromeTraceOptions options;
    options.runName = info.name;
    options.timeBase = timeBaseOf(info);
    options.allocations = allocations;
    base::requireReplaceable(file, base::kChromeOutput);
    base::writeOutput(file, [&](std::ostream& out) { profiler::writeChromeTrace(*timeline, options, out); });
}

} // namespace vitrine::app
