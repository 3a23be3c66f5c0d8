// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/plain_export.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/output_file.h"
#include "base/passing_file.h"
#include "sessions/sqlite/database.h"

namespace vitrine::sessions {

namespace {

using Values =
    std::variant<std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>, std::vector<std::string>>;

std::string tableName(const std::string& stream) {
    std::string name = stream;
    std::replace_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    // The session's own tables keep their names.
    static const std::set<std::string> kTaken{"runs", "texts", "notes", "tags", "timeline_notes"};
    return kTaken.contains(name) ? name + "_events" : name;
}

const char* sqlType(base::ColumnType type) {
    switch (type) {
    case base::ColumnType::Float64:
        return "REAL";
    case base::ColumnType::Text:
        return "TEXT";
    default:
        return "INTEGER";
    }
}

Values decode(const base::Column& column, std::uint64_t rows) {
    switch (column.type) {
    case base::ColumnType::Int64:
        return base::decodeInt64(column, rows);
    case base::ColumnType::UInt64:
        return base::decodeUInt64(column, rows);
    case base::ColumnType::Float64:
        return base::decodeFloat64(column, rows);
    case base::ColumnType::Text:
        break;
    }
    return base::decodeText(column, rows);
}

/// One table that takes the chunks of one stream. A chunk may lack columns that others have (sizes of axes that none of
/// its tensors has): they are null in its rows.
class StreamTable {
public:
    StreamTable(const Database& database, const std::string& stream)
        : database_(database), table_(quotedName(tableName(stream))) {
        database_.execute(fmt::format("CREATE TABLE {} (run INTEGER NOT NULL)", table_));
    }

    void add(RunId run, const base::ColumnChunk& chunk) {
        std::string names = "run";
        std::string marks = "?1";
        int index = 1;
        std::vector<Values> columns;
        std::set<std::string> here{"run"};
        for (const base::Column& column : chunk.columns) {
            if (!here.insert(column.name).second) {
                throw base::BadInput(
                    fmt::format("stream {}: column {} comes twice; the session is damaged", chunk.stream, column.name));
            }
            if (names_.insert(column.name).second) {
                database_.execute(fmt::format("ALTER TABLE {} ADD COLUMN {} {}", table_, quotedName(column.name),
                                              sqlType(column.type)));
            }
            names += ", " + quotedName(column.name);
            marks += fmt::format(", ?{}", ++index);
            columns.push_back(decode(column, chunk.rows));
        }
        Statement insert(database_, fmt::format("INSERT INTO {} ({}) VALUES ({})", table_, names, marks));
        for (std::uint64_t row = 0; row < chunk.rows; ++row) {
            insert.bind(run);
            index = 1;
            for (const Values& column : columns) {
                ++index;
                std::visit([&](const auto& values) { insert.bindAt(index, values[row]); }, column);
            }
            insert.run();
        }
    }

private:
    const Database& database_;
    std::string table_;
    std::set<std::string> names_;
};

void writeRun(const Database& out, const SessionFile& session, RunId run) {
    const RunInfo info = session.run(run);
    Statement(out, "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .bind(info.id, info.name, info.workload, info.specJson, info.environmentJson, info.metricsJson, info.error,
              runStatusName(info.status), info.startedMs, info.endedMs, info.lostRecords)
        .run();
    for (const RunText& text : session.texts(run)) {
        Statement(out, "INSERT INTO texts VALUES (?, ?, ?)").bind(run, text.kind, text.body).run();
    }
    for (const std::string& tag : info.tags) {
        Statement(out, "INSERT INTO tags VALUES (?, ?)").bind(run, tag).run();
    }
    if (!info.note.empty()) {
        Statement(out, "INSERT INTO notes VALUES (?, ?)").bind(run, info.note).run();
    }
    for (const TimelineNote& note : session.timelineNotes(run)) {
        Statement(out, "INSERT INTO timeline_notes VALUES (?, ?, ?, ?, ?)")
            .bind(note.id, run, note.timeBegin, note.timeEnd, note.body)
            .run();
    }
}

void writeAll(const Database& out, const SessionFile& session, std::span<const RunId> runs) {
    constexpr std::size_t kBatch = 64;
    out.execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
    out.execute(fmt::format("PRAGMA application_id = {}", base::kTablesApplicationId));
    out.execute(
        "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT, workload TEXT, spec TEXT, environment TEXT, metrics "
        "TEXT, error TEXT, status TEXT, started_ms INTEGER, ended_ms INTEGER, lost_records INTEGER);"
        "CREATE TABLE texts (run INTEGER, kind TEXT, body TEXT);"
        "CREATE TABLE notes (run INTEGER, body TEXT);"
        "CREATE TABLE tags (run INTEGER, tag TEXT);"
        "CREATE TABLE timeline_notes (id INTEGER, run INTEGER, time_begin INTEGER, time_end INTEGER, body TEXT)");
    Transaction transaction(out);
    std::map<std::string, StreamTable> tables;
    for (const RunId run : runs) {
        writeRun(out, session, run);
        for (const std::string& stream : session.streams(run)) {
            std::uint64_t next = 0;
            for (auto batch = session.chunks(run, stream, next, kBatch); !batch.empty();
                 batch = session.chunks(run, stream, next, kBatch)) {
                for (const base::ColumnChunk& chunk : batch) {
                    tables.try_emplace(stream, out, stream).first->second.add(run, chunk);
                    next = chunk.sequence + 1;
                }
            }
        }
    }
    transaction.commit();
}

} // namespace

void exportPlainTables(const SessionFile& session, std::span<const RunId> runs, const std::string& path) {
    base::requireReplaceable(path, base::kTablesOutput);
    if (base::isWrittenInPlace(path)) {
        throw base::BadInput(fmt::format("{}: a database cannot be written to a device or a pipe; name a file", path));
    }
    const std::string target = base::outputTarget(path);
    base::removeAbandonedFiles(target);
    const std::string passing = base::passingName(target);
    try {
        const Database out(passing, Database::Access::Create);
        writeAll(out, session, runs);
    } catch (...) {
        // Gone already when it could not even be made.
        std::remove(passing.c_str());
        throw;
    }
    if (std::rename(passing.c_str(), target.c_str()) != 0) {
        const int reason = errno;
        std::remove(passing.c_str());
        base::failWriting(path, reason);
    }
}

} // namespace vitrine::sessions
