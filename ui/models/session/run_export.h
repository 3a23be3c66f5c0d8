// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A run's events as files for other programs.

#include <QString>
#include <QStringList>

#include "sessions/session_file.h"

namespace vitrine::profiler {
class RunTimeline;
} // namespace vitrine::profiler

namespace vitrine::ui {

enum class ExportFormat : std::uint8_t {
    Csv,        ///< NAME-allocations.csv, -scopes, -counters, -spans, -memory
    ChromeTrace ///< one JSON file that Perfetto opens
};

/// Writes on the calling thread, which is not the GUI's; returns the files. Throws BadInput that names a file which
/// cannot be written.
QStringList exportRun(const profiler::RunTimeline& timeline, const sessions::RunInfo& run, ExportFormat format,
                      const QString& path);

} // namespace vitrine::ui
