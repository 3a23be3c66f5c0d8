// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "sessions/sqlite/migrations.h"

#include <array>
#include <fmt/format.h>
#include <string>

namespace vitrine::sessions {

namespace {

// The meaning of every column stands in docs/session-format.md.
constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE runs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL,
    workload      TEXT    NOT NULL,
    spec          TEXT    NOT NULL,
    environment   TEXT    NOT NULL,
    metrics       TEXT    NOT NULL,
    error         TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    started_ms    INTEGER NOT NULL,
    ended_ms      INTEGER NOT NULL,
    lost_records  INTEGER NOT NULL,
    owner_machine TEXT    NOT NULL,
    owner_pid     INTEGER NOT NULL,
    owner_start   INTEGER NOT NULL,
    heartbeat_ms  INTEGER NOT NULL
);
CREATE TABLE texts (
    run  INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    kind TEXT    NOT NULL,
    body TEXT    NOT NULL,
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;
CREATE TABLE notes (
    run  INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
    body TEXT NOT NULL
);
CREATE TABLE tags (
    run      INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    tag      TEXT    NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (run, tag)
) WITHOUT ROWID;
CREATE TABLE images (
    id   INTEGER PRIMARY KEY,
    run  INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    name TEXT    NOT NULL,
    png  BLOB    NOT NULL,
    UNIQUE (run, name)
);
CREATE TABLE chunks (
    id         INTEGER PRIMARY KEY,
    run        INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    stream     TEXT    NOT NULL,
    sequence   INTEGER NOT NULL,
    rows       INTEGER NOT NULL,
    time_begin INTEGER NOT NULL,
    time_end   INTEGER NOT NULL,
    data       BLOB    NOT NULL,
    UNIQUE (run, stream, sequence)
);
CREATE TABLE timeline_notes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run        INTEGER NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    time_begin INTEGER NOT NULL,
    time_end   INTEGER NOT NULL,
    body       TEXT    NOT NULL
);
CREATE INDEX timeline_notes_by_run ON timeline_notes (run, time_begin);
)sql";

constexpr std::string_view kVersion2 = R"sql(
CREATE TABLE session_texts (
    name TEXT PRIMARY KEY,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sweeps (
    run   INTEGER PRIMARY KEY REFERENCES runs(id) ON DELETE CASCADE,
    sweep TEXT NOT NULL
);
)sql";

constexpr std::array<Migration, 2> kMigrations{{{1, kVersion1}, {2, kVersion2}}};

} // namespace

std::span<const Migration> migrations() {
    return kMigrations;
}

std::int64_t formatVersion() {
    return kMigrations.back().version;
}

void migrate(const Database& database, std::span<const Migration> steps) {
    if (steps.empty() || database.queryInteger("PRAGMA user_version") >= steps.back().version) {
        return;
    }
    Transaction transaction(database);
    // Read again under the lock: another process may have been faster.
    std::int64_t version = database.queryInteger("PRAGMA user_version");
    for (const Migration& step : steps) {
        if (step.version > version) {
            database.execute(std::string(step.sql));
            version = step.version;
        }
    }
    database.execute(fmt::format("PRAGMA user_version = {}", version));
    transaction.commit();
}

} // namespace vitrine::sessions
