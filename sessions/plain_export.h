// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A session as plain SQL tables, for people who want to ask their own questions.

#include <span>
#include <string>

#include "sessions/session_file.h"

namespace vitrine::sessions {

/// Writes an SQLite database to `path`: runs, texts, notes, tags, timeline_notes as they are, and every event stream as
/// a table of its own with one row an event: stream "memory.pyramid.2" becomes table memory_pyramid_2 (run, and the
/// stream's columns). An earlier export there is replaced when everything is written; any other file is refused.
/// Unsigned values above 2^63 keep their bits and read as negative numbers, since SQL has no unsigned type.
void exportPlainTables(const SessionFile& session, std::span<const RunId> runs, const std::string& path);

} // namespace vitrine::sessions
