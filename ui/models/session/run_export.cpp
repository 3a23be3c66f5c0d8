// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/session/run_export.h"

#include <QFileInfo>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "profiler/export/chrome_trace.h"
#include "profiler/export/csv.h"
#include "ui/models/session/run_summary.h"
#include "ui/models/session/session_document.h"

namespace vitrine::ui {

namespace {

constexpr int kMemoryRows = 2000;

void write(const QString& path, const std::function<void(std::ostream&)>& body) {
    std::ofstream file(path.toStdString(), std::ios::binary | std::ios::trunc);
    if (file) {
        body(file);
        file.flush();
    }
    if (!file) {
        throw base::BadInput(path.toStdString() + ": not written; choose another folder or free some space");
    }
}

} // namespace

QStringList exportRun(const profiler::RunTimeline& timeline, const sessions::RunInfo& run, ExportFormat format,
                      const QString& path) {
    if (format == ExportFormat::ChromeTrace) {
        profiler::ChromeTraceOptions options;
        options.runName = QStringLiteral("#%1 %2").arg(run.id).arg(runTitle(run)).toStdString();
        options.timeBase = runSummary(run).virtualTime ? base::TimeBase::Virtual : base::TimeBase::Monotonic;
        write(path, [&](std::ostream& out) { profiler::writeChromeTrace(timeline, options, out); });
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
    for (const auto& [name, body] : tables) {
        files << stem + QLatin1Char('-') + QString::fromLatin1(name) + QStringLiteral(".csv");
        write(files.last(), body);
    }
    return files;
}

} // namespace vitrine::ui
