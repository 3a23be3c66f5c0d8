// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <fmt/format.h>

#include "base/clock.h"
#include "base/error.h"
#include "sessions/owner.h"
#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"
#include "sessions/sqlite/memory_edits.h"

namespace vitrine::sessions {

namespace {

Owner ownerOf(const Statement& row) {
    return {row.text(1), row.integer(2), row.integer(3)};
}

} // namespace

void SessionFile::requireWritable() const {
    if (!writable_) {
        throw base::BadInput(fmt::format("{}: opened for reading only", path_));
    }
}

void SessionFile::requireEditable() const {
    if (!editsInMemory_) {
        requireWritable();
    }
}

void SessionFile::noteEdit(RunId run) const {
    requireEditable();
    requireRun(run);
    if (editsInMemory_) {
        markMemoryEdit(*database_, run);
    }
}

void SessionFile::noteEditOf(std::int64_t timelineNote) const {
    requireEditable();
    Statement find(*database_, "SELECT run FROM timeline_notes WHERE id = ?");
    if (editsInMemory_ && find.bind(timelineNote).step()) {
        markMemoryEdit(*database_, find.integer(0));
    }
}

void SessionFile::requireRun(RunId run) const {
    Statement find(*database_, "SELECT 1 FROM runs WHERE id = ?");
    if (!find.bind(run).step()) {
        throw base::BadInput(
            fmt::format("{}: run {}: there is no such run; `vitrine session ls` lists them", path_, run));
    }
}

void SessionFile::requireChange(RunId run) const {
    if (database_->changes() == 0) {
        requireRun(run);
    }
}

void SessionFile::settleAbandonedRuns() {
    std::vector<std::pair<RunId, std::int64_t>> gone;
    Statement running(*database_, "SELECT id, owner_machine, owner_pid, owner_start, heartbeat_ms FROM runs "
                                  "WHERE status = 'running'");
    while (running.step()) {
        if (damaged_.contains(running.integer(0))) {
            continue; // it stays as it is
        }
        if (ownerIsGone(ownerOf(running), running.integer(4), base::wallClockMs())) {
            gone.emplace_back(running.integer(0), running.integer(4));
        }
    }
    if (gone.empty()) {
        return;
    }
    Transaction transaction(*database_);
    Statement settle(*database_,
                     "UPDATE runs SET status = 'interrupted', ended_ms = ? WHERE id = ? AND status = 'running'");
    for (const auto& [run, heartbeatMs] : gone) {
        settle.bind(heartbeatMs, run).run();
    }
    transaction.commit();
}

RunId SessionFile::insertRun(const RunInfo& info, bool owned) {
    const Owner owner = owned ? thisProcess() : Owner{};
    Statement insert(
        *database_,
        "INSERT INTO runs (name, workload, spec, environment, metrics, error, status, started_ms, ended_ms, "
        "lost_records, owner_machine, owner_pid, owner_start, heartbeat_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert
        .bind(info.name, info.workload, info.specJson, info.environmentJson,
              info.metricsJson.empty() ? std::string("{}") : info.metricsJson, info.error, runStatusName(info.status),
              info.startedMs, info.endedMs, info.lostRecords, owner.machine, owner.pid, owner.start,
              base::wallClockMs())
        .run();
    const RunId run = database_->lastInsertId();
    insertTags(run, info.tags);
    if (!info.note.empty()) {
        Statement(*database_, "INSERT INTO notes (run, body) VALUES (?, ?)").bind(run, info.note).run();
    }
    if (!info.sweep.empty()) {
        setSweep(run, info.sweep);
    }
    return run;
}

void SessionFile::insertTags(RunId run, const std::vector<std::string>& tags) {
    Statement insert(*database_, "INSERT OR IGNORE INTO tags (run, position, tag) VALUES (?, ?, ?)");
    std::int64_t position = 0;
    for (const std::string& tag : tags) {
        if (!tag.empty()) {
            insert.bind(run, position++, tag).run();
        }
    }
}

RunId SessionFile::createRun(const RunInfo& info) {
    requireWritable();
    RunInfo started = info;
    started.status = RunStatus::Running;
    started.startedMs = info.startedMs != 0 ? info.startedMs : base::wallClockMs();
    started.endedMs = 0;
    Transaction transaction(*database_);
    const RunId run = insertRun(started, true);
    transaction.commit();
    return run;
}

void SessionFile::appendChunks(RunId run, const std::vector<base::ColumnChunk>& chunks) {
    requireWritable();
    if (insertChunk_ == nullptr) {
        insertChunk_ = std::make_unique<Statement>(
            *database_, "INSERT INTO chunks (run, stream, sequence, rows, time_begin, time_end, data) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?)");
        beat_ = std::make_unique<Statement>(*database_, "UPDATE runs SET heartbeat_ms = ? WHERE id = ?");
    }
    Transaction transaction(*database_);
    for (const base::ColumnChunk& chunk : chunks) {
        insertChunk_
            ->bind(run, chunk.stream, chunk.sequence, chunk.rows, chunk.timeBegin, chunk.timeEnd, base::toBytes(chunk))
            .run();
    }
    beat_->bind(base::wallClockMs(), run).run();
    requireChange(run);
    transaction.commit();
}

void SessionFile::heartbeat(RunId run) {
    appendChunks(run, {});
}

void SessionFile::setMetrics(RunId run, const std::string& metricsJson) {
    requireWritable();
    Statement(*database_, "UPDATE runs SET metrics = ? WHERE id = ?").bind(metricsJson, run).run();
    requireChange(run);
}

void SessionFile::setLostRecords(RunId run, std::uint64_t count) {
    requireWritable();
    Statement(*database_, "UPDATE runs SET lost_records = ? WHERE id = ?").bind(count, run).run();
    requireChange(run);
}

void SessionFile::finishRun(RunId run, RunStatus status, const std::string& metricsJson, const std::string& error) {
    requireWritable();
    const std::int64_t now = base::wallClockMs();
    Statement(*database_,
              "UPDATE runs SET status = ?, metrics = ?, error = ?, ended_ms = ?, heartbeat_ms = ? WHERE id = ?")
        .bind(runStatusName(status), metricsJson.empty() ? std::string("{}") : metricsJson, error, now, now, run)
        .run();
    requireChange(run);
}

void SessionFile::putText(RunId run, const RunText& text) {
    requireWritable();
    requireRun(run);
    Statement(*database_, "INSERT OR REPLACE INTO texts (run, kind, body) VALUES (?, ?, ?)")
        .bind(run, text.kind, text.body)
        .run();
}

void SessionFile::setSweep(RunId run, const std::string& sweep) {
    requireWritable();
    requireRun(run);
    if (sweep.empty()) {
        Statement(*database_, "DELETE FROM sweeps WHERE run = ?").bind(run).run();
    } else {
        Statement(*database_, "INSERT OR REPLACE INTO sweeps (run, sweep) VALUES (?, ?)").bind(run, sweep).run();
    }
}

void SessionFile::putSessionText(const std::string& name, const std::string& body) {
    requireWritable();
    if (body.empty()) {
        Statement(*database_, "DELETE FROM session_texts WHERE name = ?").bind(name).run();
    } else {
        Statement(*database_, "INSERT OR REPLACE INTO session_texts (name, body) VALUES (?, ?)").bind(name, body).run();
    }
}

void SessionFile::renameRun(RunId run, const std::string& name) {
    requireWritable();
    Statement(*database_, "UPDATE runs SET name = ? WHERE id = ?").bind(name, run).run();
    requireChange(run);
}

void SessionFile::setNote(RunId run, const std::string& note) {
    noteEdit(run);
    if (note.empty()) {
        Statement(*database_, "DELETE FROM notes WHERE run = ?").bind(run).run();
    } else {
        Statement(*database_, "INSERT OR REPLACE INTO notes (run, body) VALUES (?, ?)").bind(run, note).run();
    }
}

void SessionFile::setTags(RunId run, const std::vector<std::string>& tags) {
    noteEdit(run);
    Transaction transaction(*database_);
    Statement(*database_, "DELETE FROM tags WHERE run = ?").bind(run).run();
    insertTags(run, tags);
    transaction.commit();
}

std::int64_t SessionFile::addTimelineNote(RunId run, const TimelineNote& note) {
    noteEdit(run);
    Statement(*database_,
              "INSERT INTO timeline_notes (id, run, time_begin, time_end, body) VALUES (NULLIF(?, 0), ?, ?, ?, ?)")
        .bind(note.id, run, note.timeBegin, note.timeEnd, note.body)
        .run();
    return database_->lastInsertId();
}

void SessionFile::updateTimelineNote(const TimelineNote& note) {
    noteEditOf(note.id);
    Statement(*database_, "UPDATE timeline_notes SET time_begin = ?, time_end = ?, body = ? WHERE id = ?")
        .bind(note.timeBegin, note.timeEnd, note.body, note.id)
        .run();
    if (database_->changes() == 0) {
        throw base::BadInput(fmt::format("{}: timeline note {}: there is no such note", path_, note.id));
    }
}

void SessionFile::deleteTimelineNote(std::int64_t id) {
    noteEditOf(id);
    Statement(*database_, "DELETE FROM timeline_notes WHERE id = ?").bind(id).run();
}

void SessionFile::deleteRun(RunId run) {
    requireWritable();
    requireRun(run);
    Statement(*database_, "DELETE FROM runs WHERE id = ?").bind(run).run();
    Statement(*database_, "PRAGMA incremental_vacuum").run();
}

void SessionFile::putImage(RunId run, const std::string& name, const std::string& pngBytes) {
    requireWritable();
    requireRun(run);
    Statement(*database_, "INSERT OR REPLACE INTO images (run, name, png) VALUES (?, ?, ?)")
        .bind(run, name, std::as_bytes(std::span(pngBytes)))
        .run();
}

} // namespace vitrine::sessions
