// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Notes, tags and timeline notes of a file that cannot be written. They are edited in tables of the same names in
// memory, which SQLite finds before those of the file. Belongs to the thread of the connection.

#include "sessions/run_info.h"
#include "sessions/sqlite/database.h"

namespace vitrine::sessions {

/// Copies what the file has into memory; from now on statements meet the copies.
void beginMemoryEdits(const Database& database);
/// Says that what memory holds of this run is newer than the file.
void markMemoryEdit(const Database& database, RunId run);
/// Writes what memory holds of edited runs to the file of `target`, which may be `source` itself, in one transaction.
/// Runs that the target does not have are left out.
void writeMemoryEdits(const Database& source, const Database& target);
/// Statements meet the tables of the file again.
void endMemoryEdits(const Database& database);

} // namespace vitrine::sessions
