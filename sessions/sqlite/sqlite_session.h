// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// SessionFile over one SQLite connection. Opening stands in session_open.cpp, editing in session_write.cpp, reading in
// session_read.cpp.

#include <memory>
#include <string>
#include <string_view>

#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"

namespace vitrine::sessions {

class SqliteSession final : public SessionFile {
public:
    SqliteSession(std::string path, std::unique_ptr<Database> database, bool writable);
    ~SqliteSession() override;
    SqliteSession(const SqliteSession&) = delete; // one connection
    SqliteSession& operator=(const SqliteSession&) = delete;

    const std::string& path() const override { return path_; }

    RunId createRun(const RunInfo& info) override;
    void appendChunks(RunId run, const std::vector<base::ColumnChunk>& chunks) override;
    void heartbeat(RunId run) override;
    void setMetrics(RunId run, const std::string& metricsJson) override;
    void setLostRecords(RunId run, std::uint64_t count) override;
    void finishRun(RunId run, RunStatus status, const std::string& metricsJson, const std::string& error) override;
    void putText(RunId run, const RunText& text) override;

    void renameRun(RunId run, const std::string& name) override;
    void setNote(RunId run, const std::string& note) override;
    void setTags(RunId run, const std::vector<std::string>& tags) override;
    std::int64_t addTimelineNote(RunId run, const TimelineNote& note) override;
    void updateTimelineNote(const TimelineNote& note) override;
    void deleteTimelineNote(std::int64_t id) override;
    void deleteRun(RunId run) override;
    void putImage(RunId run, const std::string& name, const std::string& pngBytes) override;

    std::vector<RunInfo> runs() const override;
    RunInfo run(RunId run) const override;
    std::optional<std::string> text(RunId run, std::string_view kind) const override;
    std::vector<RunText> texts(RunId run) const override;
    std::vector<std::string> images(RunId run) const override;
    std::optional<std::string> image(RunId run, std::string_view name) const override;
    std::vector<TimelineNote> timelineNotes(RunId run) const override;
    std::vector<std::string> streams(RunId run) const override;
    std::vector<base::ColumnChunk> chunks(RunId run, std::string_view stream, std::uint64_t firstSequence,
                                          std::size_t maxChunks) const override;
    std::uint64_t changeCounter() const override;

    RunId copyRunTo(RunId run, SessionFile& target) const override;

    /// Marks the runs as ended whose owner process is gone.
    void settleAbandonedRuns();

private:
    RunInfo readRun(const Statement& row) const;
    void readTagsAndNote(RunInfo& info) const;
    void requireRun(RunId run) const; ///< throws BadInput when there is none
    void requireWritable() const;
    void requireChange(RunId run) const; ///< after an UPDATE of one run: throws BadInput when it met none
    RunId insertRun(const RunInfo& info, bool owned);
    void insertTags(RunId run, const std::vector<std::string>& tags);

    std::string path_;
    std::unique_ptr<Database> database_;
    bool writable_;
    std::unique_ptr<Statement> insertChunk_;
    std::unique_ptr<Statement> beat_;
    mutable std::unique_ptr<Statement> dataVersion_;
};

/// The status of a name; Interrupted for a name of a later format.
RunStatus runStatusFromName(std::string_view name);

} // namespace vitrine::sessions
