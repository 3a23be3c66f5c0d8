// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The session file: one SQLite database (`.vitrine`) that holds runs, texts, notes, tags, images and event streams as
// column chunks. Several processes may append to one file. WAL while open, one plain file when closed.
// docs/session-format.md describes the format. Opening stands in session_open.cpp, reading in session_read.cpp, writing
// in session_write.cpp. A SessionFile belongs to one thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/column_chunk.h"
#include "sessions/run_info.h"

namespace vitrine::sessions {

class Database;
class Statement;

enum class OpenMode : std::uint8_t { ReadOnly, ReadWrite, CreateOrOpen };

/// What lies at the path of an open file: its name can be taken from it at any time.
enum class FilePlace : std::uint8_t {
    InPlace,
    Gone,     ///< nothing: it was deleted or moved. What is written now goes with the last program that closes it.
    Replaced, ///< another file
};

/// Whether a copy of a run gets a new number or keeps its own (and those of its timeline notes), which must be free.
enum class CopyIds : std::uint8_t { New, Same };

class SessionFile {
public:
    /// Checks the first 100 bytes before SQLite sees the file; migrates an older version (ReadWrite only).
    /// Throws BadInput for a foreign, newer, truncated or corrupt file, which is never written to.
    /// Opening marks runs whose owner process is gone as Interrupted (ReadWrite only; shown as such when ReadOnly).
    static std::unique_ptr<SessionFile> open(const std::string& path, OpenMode mode);
    ~SessionFile();                           ///< closes; checkpoints the WAL when it is the last one
    SessionFile(const SessionFile&) = delete; // one connection
    SessionFile& operator=(const SessionFile&) = delete;

    const std::string& path() const { return path_; }
    bool writable() const { return writable_; }
    /// Compares device and inode of the path with those of the open file: one call of the system.
    FilePlace place() const;
    /// Where the open file lies when it was moved from its path; empty where it was not, or was deleted.
    std::string movedTo() const;
    /// Writes all that is seen of the session here, also of a file that is gone and edits in memory, to a new session
    /// at `path`. Throws BadInput where `path` is this session, anything that is no session, or a session and `replace`
    /// is false; Internal when it cannot be written. What was at `path` stays then.
    void saveCopy(const std::string& path, bool replace) const;

    // Editing.
    /// From now on notes, tags and timeline notes are edited in memory alone, and read from there. For a file that
    /// cannot be written.
    void keepEditsInMemory();
    bool editsInMemory() const { return editsInMemory_; }
    /// Writes the edits to the file, and keeps none in memory any more. Throws as writing does; they stay then.
    void writeEdits();
    void dropEdits(); ///< forgets the edits in memory

    // Writing a run. The creating process owns it.
    RunId createRun(const RunInfo& info);
    /// Appends in one transaction; also renews the heartbeat. Chunks carry their own sequence numbers.
    void appendChunks(RunId run, const std::vector<base::ColumnChunk>& chunks);
    void heartbeat(RunId run);
    void setMetrics(RunId run, const std::string& metricsJson);
    void setLostRecords(RunId run, std::uint64_t count);
    void finishRun(RunId run, RunStatus status, const std::string& metricsJson, const std::string& error);
    void putText(RunId run, const RunText& text); ///< replaces a text of that kind

    /// Puts the run into the group of a sweep; an empty name takes it out.
    void setSweep(RunId run, const std::string& sweep);
    /// A text of the session itself, such as "queue"; replaces one of that name. An empty text deletes it.
    void putSessionText(const std::string& name, const std::string& body);

    void renameRun(RunId run, const std::string& name);
    void setNote(RunId run, const std::string& note);
    void setTags(RunId run, const std::vector<std::string>& tags);
    /// `note.id` 0: it gets a new number; otherwise a free one, as that of a note that comes back.
    std::int64_t addTimelineNote(RunId run, const TimelineNote& note);
    void updateTimelineNote(const TimelineNote& note);
    void deleteTimelineNote(std::int64_t id);
    void deleteRun(RunId run);
    void putImage(RunId run, const std::string& name, const std::string& pngBytes);

    // Reading. A run that holds a value which is not of its column's type is damaged: reading it throws BadInput.
    std::vector<RunInfo> runs() const; ///< oldest first, without damaged ones
    /// Damaged runs, with a sentence for each. Of a file of more than 32 MiB: those that were met until now.
    const std::map<RunId, std::string>& damagedRuns() const { return damaged_; }
    RunInfo run(RunId run) const; ///< throws BadInput when there is none
    std::optional<std::string> text(RunId run, std::string_view kind) const;
    std::vector<RunText> texts(RunId run) const;
    std::optional<std::string> sessionText(std::string_view name) const;
    std::vector<std::string> images(RunId run) const;                         ///< names
    std::optional<std::string> image(RunId run, std::string_view name) const; ///< PNG bytes
    std::vector<TimelineNote> timelineNotes(RunId run) const;
    std::vector<std::string> streams(RunId run) const;
    std::uint64_t chunkCount(RunId run) const; ///< of all streams of a run
    /// Chunks of a stream with sequence >= firstSequence, in order: how live views read the tail.
    std::vector<base::ColumnChunk> chunks(RunId run, std::string_view stream, std::uint64_t firstSequence = 0,
                                          std::size_t maxChunks = SIZE_MAX) const;
    /// Changes whenever anything in the file changed, also by other processes; cheap enough to poll at 30 Hz.
    std::uint64_t changeCounter() const;

    /// Copies one run with everything into another session.
    RunId copyRunTo(RunId run, SessionFile& target, CopyIds ids = CopyIds::New) const;

private:
    SessionFile(std::string path, std::unique_ptr<Database> database, bool writable, std::int64_t version);
    void settleAbandonedRuns(); ///< marks the runs as ended whose owner process is gone
    RunInfo readRun(const Statement& row) const;
    void readTagsAndNote(RunInfo& info) const;
    void noteDamage(RunId run, const std::string& what) const;
    void noteDamages(const std::map<RunId, std::string>& damage) const;
    void requireReadable(RunId run) const; ///< throws BadInput for a damaged one
    void requireRun(RunId run) const;      ///< throws BadInput when there is none
    void requireWritable() const;
    void requireEditable() const;   ///< for what can be edited in memory
    void noteEdit(RunId run) const; ///< before an edit
    void noteEditOf(std::int64_t timelineNote) const;
    void leaveWal(FilePlace place) const;
    bool isOpenFile(const std::string& path) const;
    void requireChange(RunId run) const; ///< after an UPDATE of one run: throws BadInput when it met none
    RunId insertRun(const RunInfo& info, bool owned);
    void insertTags(RunId run, const std::vector<std::string>& tags);

    std::string path_;
    std::unique_ptr<Database> database_;
    bool writable_;
    std::int64_t version_; ///< of the tables that the file has
    bool editsInMemory_ = false;
    mutable std::map<RunId, std::string> damaged_;
    int file_ = -1; ///< stays the open file's, whatever name it has; for nothing else
    std::unique_ptr<Statement> insertChunk_;
    std::unique_ptr<Statement> beat_;
    mutable std::unique_ptr<Statement> dataVersion_;
};

} // namespace vitrine::sessions
