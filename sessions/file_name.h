// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names of session files, when several processes may create, copy or delete one at the same moment. SQLite finds a log
// by its name, "FILE-wal": one that a deleted session left would be read into a new file of that name. So it is removed
// before the new file gets the name, and never while a file has it. All functions are thread-safe.

#include <string>

namespace vitrine::sessions {

/// The folder of a file; "." for a name alone.
std::string folderOf(const std::string& path);

/// Removes the logs of a deleted file, unless a file has its name by now.
void removeLogsOfGone(const std::string& path);

/// Gives a complete file, written at `passing` in the same folder, its name in one step. False when a file has that
/// name and `replace` is false; `passing` stays then. Throws Internal with the system's reason when it cannot be done.
bool takeName(const std::string& passing, const std::string& path, bool replace);

} // namespace vitrine::sessions
