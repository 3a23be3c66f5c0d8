// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Options for commands that take attention programs and do not run an experiment.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/language/program_choice.h"

namespace vitrine::app {

/// --mods and --define. `defines` receives the texts; takeDefines reads them after parsing.
void addModOptions(CLI::App& command, engine::ProgramChoice& mods, std::vector<std::string>& defines);
/// Throws BadInput that names --define.
void takeDefines(engine::ProgramChoice& mods, const std::vector<std::string>& defines);

} // namespace vitrine::app
