// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/runs/run_export.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "app/runner/runs/run_compare.h"
#include "base/error.h"
#include "base/output_file.h"
#include "base/passing_file.h"
#include "profiler/export/chrome_trace.h"
#include "profiler/export/csv.h"
#include "profiler/timeline/gap_facet.h"
#include "profiler/timeline/run_timeline.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Pieces of the run in memory.csv.
constexpr int kTotalsRows = 2000;

void writeFile(const std::string& path, const std::function<void(std::ostream&)>& write) {
    const bool inPlace = base::isWrittenInPlace(path);
    const std::string target = base::outputTarget(path);
    if (!inPlace) {
        base::removeAbandonedFiles(target);
    }
    const std::string passing = inPlace ? path : base::passingName(target);
    errno = 0;
    try {
        std::ofstream out(passing, std::ios::binary | (inPlace ? std::ios::app : std::ios::trunc));
        if (!out) {
            base::failWriting(path, errno);
        }
        write(out);
        out.close();
        if (!out) {
            base::failWriting(path, errno);
        }
        if (!inPlace && std::rename(passing.c_str(), target.c_str()) != 0) {
            base::failWriting(path, errno);
        }
    } catch (...) {
        const int reason = errno;
        if (!inPlace) {
            std::remove(passing.c_str()); // not there when it could not even be made
        }
        errno = reason;
        throw;
    }
}

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
    if (!std::filesystem::is_directory(folder)) {
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
        writeFile(files[i], tables[i].second);
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
    writeFile(file, [&](std::ostream& out) { profiler::writeChromeTrace(*timeline, options, out); });
}

} // namespace vitrine::app
