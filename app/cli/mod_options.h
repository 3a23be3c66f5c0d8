// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Options that `vitrine mask` and `vitrine attention` share.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "app/runner/mod_request.h"

namespace vitrine::app {

/// --mods and --define. `defines` receives the texts; takeDefines reads them after parsing.
void addModOptions(CLI::App& command, ModRequest& mods, std::vector<std::string>& defines);
/// Throws BadInput that names --define.
void takeDefines(ModRequest& mods, const std::vector<std::string>& defines);

} // namespace vitrine::app
