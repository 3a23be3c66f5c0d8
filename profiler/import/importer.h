// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files of other tools as runs of a session. An importer reads a file and reports the events that it holds to a sink,
// as a run would; the recorder and the views do the rest. A new importer is one file that makes a row, and a line in
// importer_table.cpp.

#include <span>
#include <string>
#include <string_view>

#include "base/stop.h"
#include "base/trace.h"

namespace vitrine::profiler {

/// One row. `reads` and `import` are called on one thread at a time.
struct Importer {
    std::string_view name;  ///< of its format, as commands write it
    std::string_view title; ///< what people call the format
    /// Whether it reads a file of this path that begins with `head` (at most kHeadBytes).
    bool (*reads)(std::string_view path, std::string_view head) = nullptr;
    /// Reports all events of the file, with times in nanoseconds from 0. The sink may make it wait, so that nothing is
    /// lost. Returns what the file says as a whole: a JSON object, the metrics of the run. Throws BadInput "FILE:
    /// where: what" for a damaged file and Cancelled when `stop` asks; `progress` may be null.
    std::string (*import)(const std::string& path, base::TraceSink& sink, base::ProgressSink* progress,
                          const base::StopToken& stop) = nullptr;
};

inline constexpr std::size_t kHeadBytes = 4096;

/// All importers, in the order in which they are asked.
std::span<const Importer* const> importerTable();
/// The importer that reads the file. Throws BadInput where the file cannot be opened, or that names the formats which
/// are known where none of them is the file's.
const Importer& importerOf(const std::string& path);

/// An importer that a program or a test adds, for as long as this lives; the row must outlive it. Not thread-safe: no
/// import may be under way. Throws Internal where the name is taken.
class ImporterRegistration {
public:
    explicit ImporterRegistration(const Importer& importer);
    ~ImporterRegistration();
    ImporterRegistration(const ImporterRegistration&) = delete; // the row is registered once
    ImporterRegistration& operator=(const ImporterRegistration&) = delete;

private:
    const Importer* importer_;
};

} // namespace vitrine::profiler
