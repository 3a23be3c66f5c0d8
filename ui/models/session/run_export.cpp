// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/run_export.h"

#include <QFileInfo>
#include <cstddef>
#include <functional>
#include <iterator>
#include <ostream>
#include <utility>

#include "base/output_file.h"
#include "profiler/export/chrome_trace.h"
#include "profiler/export/csv.h"
#include "ui/models/session/run_summary.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

namespace {

constexpr int kMemoryRows = 2000;

} // namespace

QStringList exportRun(const profiler::RunTimeline& timeline, const sessions::RunInfo& run, ExportFormat format,
                      const QString& path) {
    if (format == ExportFormat::ChromeTrace) {
        profiler::ChromeTraceOptions options;
        options.runName = QStringLiteral("#%1 %2").arg(run.id).arg(runTitle(run)).toStdString();
        options.timeBase = runSummary(run).virtualTime ? base::TimeBase::Virtual : base::TimeBase::Monotonic;
        base::requireReplaceable(path.toStdString(), base::kChromeOutput);
        base::writeOutput(path.toStdString(),
                          [&](std::ostream& out) { profiler::writeChromeTrace(timeline, options, out); });
        return {path};
    }
    const QFileInfo info(path);
    const QString stem = info.path() + QLatin1Char('/') + info.completeBaseName();
    const std::pair<const char*, std::function<void(std::ostream&)>> tables[] = {
        {"allocations", [&](std::ostream& out) { profiler::writeAllocationsCsv(timeline, out); }},
        {"scopes", [&](std::ostream& out) { profiler::writeScopesCsv(timeline, out); }},
        {"counters", [&](std::ostream& out) { profiler::writeCountersCsv(timeline, out); }},
        {"spans", [&](std::ostream& out) { profiler::writeSpansCsv(timeline, out); }},
        {"memory", [&](std::ostream& out) { profiler::writeTotalsCsv(timeline, kMemoryRows, out); }}};
    QStringList files;
    for (const auto& table : tables) {
        files << stem + QLatin1Char('-') + QString::fromLatin1(table.first) + QStringLiteral(".csv");
        base::requireReplaceable(files.last().toStdString(), base::kTableOutput);
    }
    for (std::size_t i = 0; i < std::size(tables); ++i) {
        base::writeOutput(files[static_cast<qsizetype>(i)].toStdString(), tables[i].second);
    }
    return files;
}

} // namespace vitrine::ui
