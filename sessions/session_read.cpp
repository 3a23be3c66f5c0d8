// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "sessions/owner.h"
#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"

namespace vitrine::sessions {

namespace {

constexpr const char* kRunColumns = "SELECT id, owner_machine, owner_pid, owner_start, heartbeat_ms, name, workload, "
                                    "spec, environment, metrics, error, "
                                    "status, started_ms, ended_ms, lost_records FROM runs ";

/// The version that brought the tables of sweeps and of the session's own texts.
constexpr std::int64_t kSweepsSince = 2;

std::string toText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

RunInfo SessionFile::readRun(const Statement& row) const {
    RunInfo info;
    info.id = row.integer(0);
    info.name = row.text(5);
    info.workload = row.text(6);
    info.specJson = row.text(7);
    info.environmentJson = row.text(8);
    info.metricsJson = row.text(9);
    info.error = row.text(10);
    info.status = runStatusFromName(row.text(11));
    info.startedMs = row.integer(12);
    info.endedMs = row.integer(13);
    info.lostRecords = row.unsignedInteger(14);
    const std::int64_t heartbeatMs = row.integer(4);
    if (info.status == RunStatus::Running &&
        ownerIsGone({row.text(1), row.integer(2), row.integer(3)}, heartbeatMs, base::wallClockMs())) {
        info.status = RunStatus::Interrupted;
        info.endedMs = heartbeatMs;
    }
    return info;
}

void SessionFile::readTagsAndNote(RunInfo& info) const {
    Statement tags(*database_, "SELECT tag FROM tags WHERE run = ? ORDER BY position, tag");
    tags.bind(info.id);
    while (tags.step()) {
        info.tags.push_back(tags.text(0));
    }
    Statement note(*database_, "SELECT body FROM notes WHERE run = ?");
    if (note.bind(info.id).step()) {
        info.note = note.text(0);
    }
    if (version_ >= kSweepsSince) {
        Statement sweep(*database_, "SELECT sweep FROM sweeps WHERE run = ?");
        if (sweep.bind(info.id).step()) {
            info.sweep = sweep.text(0);
        }
    }
}

void SessionFile::noteDamage(RunId run, const std::string& what) const {
    const auto [place, isNew] = damaged_.emplace(
        run, fmt::format("{}: run {} is damaged ({}); the other runs can be read: restore the file from a copy, or "
                         "delete the run",
                         path_, run, what));
    if (isNew) {
        base::logWarning(place->second);
    }
}

void SessionFile::noteDamages(const std::map<RunId, std::string>& damage) const {
    for (const auto& [run, what] : damage) {
        noteDamage(run, what);
    }
}

void SessionFile::requireReadable(RunId run) const {
    if (const auto found = damaged_.find(run); found != damaged_.end()) {
        throw base::BadInput(found->second);
    }
}

std::vector<RunInfo> SessionFile::runs() const {
    const ReadTransaction oneState(*database_);
    std::vector<RunInfo> result;
    Statement rows(*database_, std::string(kRunColumns) + "ORDER BY id");
    while (rows.step()) {
        const RunId id = rows.integer(0);
        if (damaged_.contains(id)) {
            continue;
        }
        try {
            RunInfo info = readRun(rows);
            readTagsAndNote(info);
            result.push_back(std::move(info));
        } catch (const WrongValue&) {
            noteDamage(id, "a value is not of its column's type");
        }
    }
    return result;
}

RunInfo SessionFile::run(RunId run) const {
    requireReadable(run);
    const ReadTransaction oneState(*database_);
    Statement rows(*database_, std::string(kRunColumns) + "WHERE id = ?");
    if (!rows.bind(run).step()) {
        requireRun(run);
    }
    RunInfo info = readRun(rows);
    readTagsAndNote(info);
    return info;
}

std::optional<std::string> SessionFile::text(RunId run, std::string_view kind) const {
    requireReadable(run);
    Statement rows(*database_, "SELECT body FROM texts WHERE run = ? AND kind = ?");
    if (!rows.bind(run, kind).step()) {
        return std::nullopt;
    }
    return rows.text(0);
}

std::vector<RunText> SessionFile::texts(RunId run) const {
    requireReadable(run);
    std::vector<RunText> result;
    Statement rows(*database_, "SELECT kind, body FROM texts WHERE run = ? ORDER BY kind");
    rows.bind(run);
    while (rows.step()) {
        result.push_back({rows.text(0), rows.text(1)});
    }
    return result;
}

std::optional<std::string> SessionFile::sessionText(std::string_view name) const {
    if (version_ < kSweepsSince) {
        return std::nullopt;
    }
    Statement rows(*database_, "SELECT body FROM session_texts WHERE name = ?");
    return rows.bind(name).step() ? std::optional(rows.text(0)) : std::nullopt;
}

std::vector<std::string> SessionFile::images(RunId run) const {
    requireReadable(run);
    std::vector<std::string> result;
    Statement rows(*database_, "SELECT name FROM images WHERE run = ? ORDER BY name");
    rows.bind(run);
    while (rows.step()) {
        result.push_back(rows.text(0));
    }
    return result;
}

std::optional<std::string> SessionFile::image(RunId run, std::string_view name) const {
    requireReadable(run);
    Statement rows(*database_, "SELECT png FROM images WHERE run = ? AND name = ?");
    if (!rows.bind(run, name).step()) {
        return std::nullopt;
    }
    return toText(rows.blob(0));
}

std::vector<TimelineNote> SessionFile::timelineNotes(RunId run) const {
    requireReadable(run);
    std::vector<TimelineNote> result;
    Statement rows(*database_,
                   "SELECT id, time_begin, time_end, body FROM timeline_notes WHERE run = ? ORDER BY time_begin, id");
    rows.bind(run);
    while (rows.step()) {
        result.push_back({rows.integer(0), rows.integer(1), rows.integer(2), rows.text(3)});
    }
    return result;
}

std::vector<std::string> SessionFile::streams(RunId run) const {
    requireReadable(run);
    std::vector<std::string> result;
    Statement rows(*database_, "SELECT DISTINCT stream FROM chunks WHERE run = ? ORDER BY stream");
    rows.bind(run);
    while (rows.step()) {
        result.push_back(rows.text(0));
    }
    return result;
}

std::uint64_t SessionFile::chunkCount(RunId run) const {
    Statement rows(*database_, "SELECT count(*) FROM chunks WHERE run = ?");
    rows.bind(run);
    return rows.step() ? static_cast<std::uint64_t>(rows.integer(0)) : 0;
}

std::vector<base::ColumnChunk> SessionFile::chunks(RunId run, std::string_view stream, std::uint64_t firstSequence,
                                                   std::size_t maxChunks) const {
    requireReadable(run);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::vector<base::ColumnChunk> result;
    if (firstSequence > kMost) {
        return result; // behind the last number that a row can have
    }
    Statement rows(*database_, "SELECT sequence, rows, data FROM chunks WHERE run = ? AND stream = ? AND sequence >= ? "
                               "ORDER BY sequence LIMIT ?");
    rows.bind(run, stream, firstSequence, std::min<std::uint64_t>(maxChunks, kMost));
    while (rows.step()) {
        const std::uint64_t sequence = rows.unsignedInteger(0);
        try {
            base::ColumnChunk chunk = base::fromBytes(rows.blob(2));
            if (chunk.stream != stream || chunk.sequence != sequence || chunk.rows != rows.unsignedInteger(1)) {
                throw base::BadInput("its header does not belong here");
            }
            result.push_back(std::move(chunk));
        } catch (const base::BadInput& error) {
            throw base::BadInput(
                fmt::format("{}: run {}, {} chunk {}: damaged ({})", path_, run, stream, sequence, error.message()));
        }
    }
    return result;
}

std::uint64_t SessionFile::changeCounter() const {
    if (dataVersion_ == nullptr) {
        dataVersion_ = std::make_unique<Statement>(*database_, "PRAGMA data_version");
    }
    std::uint64_t others = 0;
    if (dataVersion_->bind().step()) {
        others = dataVersion_->unsignedInteger(0);
        dataVersion_->step();
    }
    // SQLite counts what others committed and what this connection changed apart from each other.
    constexpr unsigned kOwnBits = 40;
    return (others << kOwnBits) + static_cast<std::uint64_t>(database_->totalChanges());
}

RunId SessionFile::copyRunTo(RunId run, SessionFile& target, CopyIds ids) const {
    constexpr std::size_t kBatch = 64;
    target.requireWritable();
    RunInfo info = this->run(run);
    // The copy has no owner: it holds what was there when it was made.
    info.status = info.status == RunStatus::Running ? RunStatus::Interrupted : info.status;
    // Within one file the reader's snapshot would forbid the writes.
    std::optional<ReadTransaction> oneState;
    if (&target != this) {
        oneState.emplace(*database_);
    }
    Transaction transaction(*target.database_);
    RunId copy = target.insertRun(info, false);
    if (ids == CopyIds::Same && copy != run) {
        // Its tags and note point to the number that it got.
        target.database_->execute("PRAGMA defer_foreign_keys = ON");
        for (const char* change :
             {"UPDATE runs SET id = ? WHERE id = ?", "UPDATE tags SET run = ? WHERE run = ?",
              "UPDATE notes SET run = ? WHERE run = ?", "UPDATE sweeps SET run = ? WHERE run = ?"}) {
            Statement(*target.database_, change).bind(run, copy).run();
        }
        copy = run;
    }
    for (const RunText& text : texts(run)) {
        target.putText(copy, text);
    }
    for (const std::string& name : images(run)) {
        target.putImage(copy, name, image(run, name).value_or(std::string()));
    }
    for (TimelineNote& note : timelineNotes(run)) {
        note.id = ids == CopyIds::Same ? note.id : 0;
        target.addTimelineNote(copy, note);
    }
    Statement insert(*target.database_, "INSERT INTO chunks (run, stream, sequence, rows, time_begin, time_end, data) "
                                        "VALUES (?, ?, ?, ?, ?, ?, ?)");
    for (const std::string& stream : streams(run)) {
        std::uint64_t next = 0;
        for (auto batch = chunks(run, stream, next, kBatch); !batch.empty();
             batch = chunks(run, stream, next, kBatch)) {
            for (const base::ColumnChunk& chunk : batch) {
                insert
                    .bind(copy, chunk.stream, chunk.sequence, chunk.rows, chunk.timeBegin, chunk.timeEnd,
                          base::toBytes(chunk))
                    .run();
                next = chunk.sequence + 1;
            }
        }
    }
    transaction.commit();
    return copy;
}

} // namespace vitrine::sessions
