// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The subcommands of `vitrine session`.

#include <optional>
#include <string>
#include <vector>

#include "app/cli/common/command.h"
#include "sessions/session_file.h"

namespace vitrine::app {

/// "FILE" and "RUN" words in any number: a number belongs to the file before it.
struct RunReference {
    std::string file;
    std::optional<sessions::RunId> run; ///< unset: the last run of the file
};

/// One run that a reference means. Throws BadInput when the file has no runs.
sessions::RunId resolveRun(const sessions::SessionFile& session, std::optional<sessions::RunId> run);

/// A run number; throws BadInput that names the text.
sessions::RunId parseRun(const std::string& text);

void addSessionExport(CLI::App& session, CommandLine& line);
void addSessionCompare(CLI::App& session, CommandLine& line);

} // namespace vitrine::app
