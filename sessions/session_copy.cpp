// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// A whole session at another path, and edits that wait in memory.
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <unistd.h>

#include "base/error.h"
#include "base/passing_file.h"
#include "sessions/file_name.h"
#include "sessions/session_file.h"
#include "sessions/sqlite/database.h"
#include "sessions/sqlite/file_check.h"
#include "sessions/sqlite/memory_edits.h"

namespace vitrine::sessions {

namespace {

/// A copy that people rely on is on the disk before its name is.
void flushFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool good = file >= 0 && ::fsync(file) == 0;
    const int reason = errno;
    if (file >= 0) {
        ::close(file);
    }
    if (!good) {
        throw base::Internal(std::strerror(reason));
    }
}

} // namespace

void SessionFile::saveCopy(const std::string& path, bool replace) const {
    const bool exists = sessionFileExists(path);
    if (exists) {
        if (isOpenFile(path)) {
            throw base::BadInput(fmt::format("{}: this is the session itself; give the copy another name", path));
        }
        try {
            checkSessionFile(path);
        } catch (const base::BadInput&) {
            throw base::BadInput(
                fmt::format("{}: this file is no session and is not overwritten; give the copy another name", path));
        }
        if (!replace) {
            throw base::BadInput(fmt::format("{}: there is a session of this name; give the copy another name", path));
        }
    }
    const std::string passing = base::passingName(path);
    try {
        base::removeAbandonedFiles(path);
        Statement(*database_, "VACUUM INTO ?").bind(passing).run();
        if (editsInMemory_) {
            writeMemoryEdits(*database_, Database(passing, Database::Access::ReadWrite));
        }
        flushFile(passing);
        if (!takeName(passing, path, exists)) {
            throw base::Internal(std::strerror(EEXIST));
        }
    } catch (const std::exception& error) {
        ::unlink(passing.c_str());
        throw base::Internal(
            fmt::format("{}: the copy was not written ({}); choose another folder", path, error.what()));
    }
}

void SessionFile::keepEditsInMemory() {
    if (!editsInMemory_) {
        database_->execute("PRAGMA temp_store = MEMORY"); // not within a transaction
        Transaction transaction(*database_);
        beginMemoryEdits(*database_);
        transaction.commit();
        editsInMemory_ = true;
    }
}

void SessionFile::writeEdits() {
    requireWritable();
    if (editsInMemory_) {
        writeMemoryEdits(*database_, *database_);
        dropEdits();
    }
}

void SessionFile::dropEdits() {
    if (editsInMemory_) {
        endMemoryEdits(*database_);
        editsInMemory_ = false;
    }
}

} // namespace vitrine::sessions
