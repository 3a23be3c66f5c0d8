// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <map>
#include <sqlite3.h>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/passing_file.h"
#include "sessions/file_name.h"
#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"
#include "sessions/sqlite/file_check.h"
#include "sessions/sqlite/migrations.h"

namespace vitrine::sessions {

namespace {

/// Up to this size every page is looked at when a file is opened (about 0.1 s); above it, the schema and the ends of
/// the tables.
constexpr std::uint64_t kFullCheckBytes = std::uint64_t{32} << 20;

/// The file with symbolic links followed, so that the log beside it is found.
std::string resolved(const std::string& path) {
    std::array<char, PATH_MAX> buffer{};
    return ::realpath(path.c_str(), buffer.data()) != nullptr ? std::string(buffer.data()) : path;
}

/// Makes a complete empty session under a temporary name and then gives it its real name in one step: no other process
/// ever sees a half-made file, and what a kill leaves is removed later. Does nothing when another process was faster.
void createSessionFile(const std::string& path) {
    const std::string passing = base::passingName(path);
    const auto discard = [&] {
        if (::unlink(passing.c_str()) != 0) {
            base::logWarning(fmt::format("{}: could not be removed ({})", passing, std::strerror(errno)));
        }
    };
    try {
        const Database database(passing, Database::Access::Create);
        // Pages of deleted runs go back to the disk.
        database.execute("PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL");
        database.execute(fmt::format("PRAGMA application_id = {}", kApplicationId));
        migrate(database, migrations());
    } catch (const base::Error& error) {
        if (::access(passing.c_str(), F_OK) == 0) {
            discard();
        }
        std::string message = error.message();
        if (message.rfind(passing, 0) == 0) {
            message.replace(0, passing.size(), path);
        }
        if (error.kind() == base::ErrorKind::BadInput) {
            throw base::BadInput(message);
        }
        throw base::Internal(message);
    }
    try {
        if (!takeName(passing, path, false)) {
            discard();
        }
    } catch (const base::Internal& error) {
        discard();
        throw base::BadInput(fmt::format("{}: cannot be created ({}); check the folder", path, error.message()));
    }
}

using Damage = std::map<RunId, std::string>; ///< what is wrong with a run

/// Looks for values that are not of their column's type, which SQLite takes as they come. One that belongs to a run
/// damages that run. Throws BadInput for others.
void checkTypes(const Database& database, const char* table, Damage& damage) {
    std::vector<std::pair<std::string, std::string>> columns; // name and type
    std::string cases;
    std::string owner = "NULL"; // the column with the number of the run
    Statement described(database, "SELECT name, lower(type) FROM pragma_table_info(?)");
    described.bind(table);
    while (described.step()) {
        const std::string name = described.text(0);
        cases += fmt::format(" WHEN typeof({}) NOT IN ('null', ?{}) THEN {}", quotedName(name), columns.size() + 1,
                             columns.size());
        columns.emplace_back(name, described.text(1));
        owner = name == (std::string_view(table) == "runs" ? "id" : "run") ? quotedName(name) : owner;
    }
    if (columns.empty()) {
        return;
    }
    Statement wrong(database, fmt::format("SELECT place, typeof(owner) = 'integer', owner FROM (SELECT "
                                          "CASE{} END AS place, {} AS owner FROM {}) WHERE place IS NOT NULL",
                                          cases, owner, quotedName(table)));
    wrong.bind();
    for (std::size_t i = 0; i < columns.size(); ++i) {
        wrong.bindAt(static_cast<int>(i) + 1, columns[i].second);
    }
    while (wrong.step()) {
        const auto& [name, type] = columns.at(static_cast<std::size_t>(wrong.integer(0)));
        const std::string what = fmt::format("the column {} of {} holds a value that is no {}", name, table, type);
        if (wrong.integer(1) == 0) {
            throwSqliteError(SQLITE_CORRUPT, database.path(), what);
        }
        damage.emplace(wrong.integer(2), what);
    }
}

/// Reads the places at which a damaged file would fail, before anything is written to it. Returns the runs that cannot
/// be read.
Damage checkStructure(const Database& database, const FileHeader& facts) {
    Damage damage;
    if (facts.version > 0) {
        for (const char* table : {"runs", "texts", "notes", "tags", "images", "chunks", "timeline_notes"}) {
            const bool exists =
                database.queryInteger(
                    fmt::format("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '{}'", table)) == 1;
            if (!exists) {
                throw base::BadInput(
                    fmt::format("{}: the session file is damaged (it has no table {}); restore it from a copy",
                                database.path(), table));
            }
        }
        if (facts.bytes <= kFullCheckBytes) {
            for (const char* table :
                 {"runs", "texts", "notes", "tags", "images", "chunks", "timeline_notes", "session_texts", "sweeps"}) {
                checkTypes(database, table, damage);
            }
        }
        database.queryInteger("SELECT sum(length(spec) + length(metrics)) FROM runs");
        database.queryInteger("SELECT length(data) FROM chunks ORDER BY id DESC LIMIT 1");
    } else if (database.queryInteger("SELECT count(*) FROM sqlite_schema WHERE name = 'runs'") > 0) {
        throw base::BadInput(
            fmt::format("{}: damaged header (version 0); restore the file from a copy", database.path()));
    }
    if (facts.bytes <= kFullCheckBytes) {
        const std::string verdict = database.queryText("PRAGMA quick_check(1)");
        if (verdict != "ok") {
            // The first line only names the database.
            constexpr std::string_view kTitle = "*** in database main ***\n";
            throwSqliteError(SQLITE_CORRUPT, database.path(),
                             verdict.c_str() + (verdict.starts_with(kTitle) ? kTitle.size() : 0));
        }
    }
    return damage;
}

/// Write-ahead logging lets readers and several writers work at once. The switch needs the file for itself for a
/// moment, without SQLite's usual waiting.
void enterWal(const Database& database) {
    constexpr int kTries = 100;
    for (int attempt = 1;; ++attempt) {
        try {
            if (database.queryText("PRAGMA journal_mode = WAL") != "wal") {
                base::logInfo(fmt::format("{}: this file system has no shared memory; readers and writers take turns",
                                          database.path()));
            }
            break;
        } catch (const Busy&) {
            if (attempt == kTries) {
                throw;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
    }
    database.execute("PRAGMA synchronous = NORMAL");
    // A long reader can make the log grow; it shrinks again to this.
    database.execute("PRAGMA journal_size_limit = 67108864");
}

/// Takes back what a writer began and did not finish. Only a writing connection may do that.
void rollBack(const std::string& path) {
    const Database database(path, Database::Access::ReadWrite);
    database.queryInteger("SELECT count(*) FROM sqlite_schema");
}

std::unique_ptr<Database> openReadOnly(const std::string& path, const FileHeader& facts) {
    const std::string file = resolved(path);
    const bool lockable = ::access(folderOf(file).c_str(), W_OK) == 0;
    if (facts.wal && !lockable) {
        if (facts.walFile && ::access((file + "-shm").c_str(), R_OK) != 0) {
            throw base::BadInput(fmt::format("{}: it was not closed and lies where nothing can be written; copy it "
                                             "with its -wal file to another folder",
                                             path));
        }
        if (!facts.walFile) {
            return std::make_unique<Database>(path, Database::Access::Immutable);
        }
    }
    return std::make_unique<Database>(path, Database::Access::ReadOnly);
}

} // namespace

std::unique_ptr<SessionFile> SessionFile::open(const std::string& path, OpenMode mode) {
    if (path.empty()) {
        throw base::BadInput("the session file has no name; write --session FILE");
    }
    if (!sessionFileExists(path)) {
        if (mode != OpenMode::CreateOrOpen) {
            throw base::BadInput(fmt::format("{}: no such file", path));
        }
        createSessionFile(path);
    }
    const FileHeader facts = checkSessionFile(path);
    if (facts.journal) {
        rollBack(path);
    }
    std::unique_ptr<Database> reader = openReadOnly(path, facts);
    const Damage damage = checkStructure(*reader, facts);
    if (mode == OpenMode::ReadOnly) {
        if (facts.version < kOldestReadable) {
            throw base::BadInput(
                fmt::format("{}: session format {} is older than this program's ({}); open it once for writing", path,
                            facts.version, formatVersion()));
        }
        std::unique_ptr<SessionFile> session(new SessionFile(path, std::move(reader), false, facts.version));
        session->noteDamages(damage);
        return session;
    }
    reader.reset();
    if (::access(path.c_str(), W_OK) != 0) {
        throw base::BadInput(
            fmt::format("{}: cannot be written ({}); check its permissions or use a copy", path, std::strerror(errno)));
    }
    base::removeAbandonedFiles(path);
    auto database = std::make_unique<Database>(path, Database::Access::ReadWrite);
    enterWal(*database);
    migrate(*database, migrations());
    std::unique_ptr<SessionFile> session(new SessionFile(path, std::move(database), true, formatVersion()));
    session->noteDamages(damage);
    session->settleAbandonedRuns();
    return session;
}

SessionFile::SessionFile(std::string path, std::unique_ptr<Database> database, bool writable, std::int64_t version)
    : path_(std::move(path)), database_(std::move(database)), writable_(writable), version_(version) {
    // O_PATH: closing it does not end SQLite's locks, as closing any other descriptor of the file would.
    file_ = ::open(path_.c_str(), O_PATH | O_CLOEXEC);
}

FilePlace SessionFile::place() const {
    if (::access(path_.c_str(), F_OK) != 0) {
        return FilePlace::Gone;
    }
    // SQLite sees what happened between its opening and ours.
    int moved = 0;
    sqlite3_file_control(database_->handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved != 0 || !isOpenFile(path_) ? FilePlace::Replaced : FilePlace::InPlace;
}

bool SessionFile::isOpenFile(const std::string& path) const {
    struct stat own{};
    struct stat there{};
    return ::fstat(file_, &own) == 0 && ::stat(path.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

std::string SessionFile::movedTo() const {
    std::array<char, PATH_MAX> buffer{};
    const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", file_).c_str(), buffer.data(), buffer.size());
    const std::string name(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    // A deleted file's name ends with " (deleted)", and nothing lies there.
    return !name.empty() && isOpenFile(name) && place() != FilePlace::InPlace ? name : std::string();
}

/// A file that was moved gets all of its log; but its log's name may belong to another file by now.
void SessionFile::leaveWal(FilePlace place) const {
    // Only the last one can leave write-ahead logging; the others must not wait for that.
    database_->setBusyTimeout(0);
    database_->queryInteger("PRAGMA wal_checkpoint(TRUNCATE)");
    if (place == FilePlace::InPlace) {
        database_->queryText("PRAGMA journal_mode = DELETE");
    } else if (place == FilePlace::Gone) {
        removeLogsOfGone(resolved(path_));
    }
}

SessionFile::~SessionFile() {
    insertChunk_.reset();
    beat_.reset();
    dataVersion_.reset();
    try {
        if (writable_) {
            leaveWal(place());
        }
    } catch (const base::Error& error) {
        base::logDebug(fmt::format("{}: stays in write-ahead logging, others use it: {}", path_, error.message()));
    } catch (const std::exception& error) {
        base::logWarning(fmt::format("{}: {}", path_, error.what()));
    }
    if (file_ >= 0) {
        ::close(file_);
    }
}

} // namespace vitrine::sessions
