// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Checks a file before SQLite opens it, so that only session files are ever written to.

#include <cstdint>
#include <string>

namespace vitrine::sessions {

struct FileHeader {
    std::uint64_t bytes = 0;
    std::uint32_t pageSize = 0;
    std::int64_t version = 0; ///< user_version
    bool wal = false;         ///< the header says write-ahead logging
    bool walFile = false;     ///< and there is a log with something in it
    bool journal = false;     ///< a rollback journal lies beside it: a writer died while it entered or left logging
};

/// True when a file exists at `path`. Throws BadInput when that cannot be determined, or when it is not a regular file.
bool sessionFileExists(const std::string& path);

/// Reads the first 100 bytes and compares them with what a session file of a known version has; also its size.
/// Throws BadInput "PATH: what". The read goes through SQLite's file layer: closing a descriptor of our own would drop
/// the locks that other connections of this process hold on the file (POSIX advisory locks).
FileHeader checkSessionFile(const std::string& path);

} // namespace vitrine::sessions
