// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The command line as a whole: all commands, and what is said when it was wrong.

#include <string>

#include "app/cli/common/command.h"

namespace vitrine::app {

/// The whole program, ready to parse.
void buildCommandLine(CLI::App& app, CommandLine& line);

/// The command that was chosen: the deepest one that was parsed.
const CLI::App* chosenCommand(const CLI::App& app);

/// "vitrine plan generate"
std::string commandPath(const CLI::App& command);

/// A sentence that says what CLI11 refused. For an unknown option or command it names the nearest known one.
std::string usageError(const CLI::App& app, const CLI::ParseError& error);

} // namespace vitrine::app
