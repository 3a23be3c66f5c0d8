// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A file of another tool becomes a run of a session.

#include <string>

#include "base/stop.h"
#include "sessions/session_file.h"

namespace vitrine::app {

/// Appends what the file holds to the session file, which is made when it is not there, and returns the run. Nothing is
/// dropped: the importer waits for the recording. An import that fails or is cancelled leaves a run that says so.
/// Throws what the importer and the session throw; `progress` may be null. Any thread.
sessions::RunId importRun(const std::string& path, const std::string& sessionFile, base::ProgressSink* progress,
                          const base::StopToken& stop);

} // namespace vitrine::app
