// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The session file: one SQLite database (`.vitrine`) that holds runs, texts, notes, tags, images and event streams as
// column chunks. Several processes may append to one file. WAL while open, one plain file when closed.
// docs/session-format.md describes the format. A SessionFile belongs to one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/column_chunk.h"

namespace vitrine::sessions {

using RunId = std::int64_t;

enum class RunStatus : std::uint8_t { Running, Done, Failed, OutOfMemory, Cancelled, Interrupted };
std::string_view runStatusName(RunStatus status); ///< "running", "done", "out_of_memory", ...

/// Everything of a run but its events.
struct RunInfo {
    RunId id = 0;
    std::string name;            ///< shown in lists; the user may change it
    std::string workload;        ///< "generate"
    std::string specJson;        ///< the experiment
    std::string environmentJson; ///< program version, machine, backend, device traits, time base
    std::string metricsJson;     ///< flat or nested results; {} while running
    std::string error;           ///< one sentence, empty when it ended well
    RunStatus status = RunStatus::Running;
    std::int64_t startedMs = 0; ///< Unix milliseconds
    std::int64_t endedMs = 0;   ///< 0 while running
    std::uint64_t lostRecords = 0;
    std::vector<std::string> tags;
    std::string note;
};

/// A text that belongs to a run: "prompt", "output", "log".
struct RunText {
    std::string kind;
    std::string body;
};

struct TimelineNote {
    std::int64_t id = 0;
    std::int64_t timeBegin = 0, timeEnd = 0; ///< run time, ns
    std::string body;
};

enum class OpenMode : std::uint8_t { ReadOnly, ReadWrite, CreateOrOpen };

class SessionFile {
public:
    /// Checks the first 100 bytes before SQLite sees the file; migrates an older version (ReadWrite only).
    /// Throws BadInput for a foreign, newer, truncated or corrupt file, which is never written to.
    /// Opening marks runs whose owner process is gone as Interrupted (ReadWrite only; shown as such when ReadOnly).
    static std::unique_ptr<SessionFile> open(const std::string& path, OpenMode mode);
    virtual ~SessionFile() = default; ///< closes; checkpoints the WAL when it is the last one

    virtual const std::string& path() const = 0;

    // Writing a run. The creating process owns it.
    virtual RunId createRun(const RunInfo& info) = 0;
    /// Appends in one transaction; also renews the heartbeat. Chunks carry their own sequence numbers.
    virtual void appendChunks(RunId run, const std::vector<base::ColumnChunk>& chunks) = 0;
    virtual void heartbeat(RunId run) = 0;
    virtual void setMetrics(RunId run, const std::string& metricsJson) = 0;
    virtual void setLostRecords(RunId run, std::uint64_t count) = 0;
    virtual void finishRun(RunId run, RunStatus status, const std::string& metricsJson, const std::string& error) = 0;
    virtual void putText(RunId run, const RunText& text) = 0; ///< replaces a text of that kind

    // Editing.
    virtual void renameRun(RunId run, const std::string& name) = 0;
    virtual void setNote(RunId run, const std::string& note) = 0;
    virtual void setTags(RunId run, const std::vector<std::string>& tags) = 0;
    virtual std::int64_t addTimelineNote(RunId run, const TimelineNote& note) = 0;
    virtual void updateTimelineNote(const TimelineNote& note) = 0;
    virtual void deleteTimelineNote(std::int64_t id) = 0;
    virtual void deleteRun(RunId run) = 0;
    virtual void putImage(RunId run, const std::string& name, const std::string& pngBytes) = 0;

    // Reading.
    virtual std::vector<RunInfo> runs() const = 0; ///< oldest first
    virtual RunInfo run(RunId run) const = 0;      ///< throws BadInput when there is none
    virtual std::optional<std::string> text(RunId run, std::string_view kind) const = 0;
    virtual std::vector<RunText> texts(RunId run) const = 0;
    virtual std::vector<std::string> images(RunId run) const = 0;                         ///< names
    virtual std::optional<std::string> image(RunId run, std::string_view name) const = 0; ///< PNG bytes
    virtual std::vector<TimelineNote> timelineNotes(RunId run) const = 0;
    virtual std::vector<std::string> streams(RunId run) const = 0;
    /// Chunks of a stream with sequence >= firstSequence, in order: how live views read the tail.
    virtual std::vector<base::ColumnChunk> chunks(RunId run, std::string_view stream, std::uint64_t firstSequence = 0,
                                                  std::size_t maxChunks = SIZE_MAX) const = 0;
    /// Changes whenever anything in the file changed, also by other processes; cheap enough to poll at 30 Hz.
    virtual std::uint64_t changeCounter() const = 0;

    /// Copies one run with everything into another session.
    virtual RunId copyRunTo(RunId run, SessionFile& target) const = 0;
};

/// Compares metrics of two runs: flattened numeric leaves of metricsJson, "peak_by_category.weights".
struct MetricDifference {
    std::string name;
    std::optional<double> a, b;
};
std::vector<MetricDifference> compareMetrics(const RunInfo& a, const RunInfo& b);

} // namespace vitrine::sessions
