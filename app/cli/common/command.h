// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What every command of `vitrine` is made with.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "app/cli/common/console.h"

namespace vitrine::app {

/// When the user chose a command, parsing sets `action` to what it does.
struct CommandLine {
    GlobalOptions options;
    std::function<int()> action; ///< returns the exit code; may throw base::Error
};

/// A subcommand that also takes the global options after its name. Its help ends with `example`.
CLI::App* addCommand(CLI::App& app, const std::string& name, const std::string& description,
                     const std::string& example);

/// Throws BadInput "OPTION: what" for a text that is kept with a run and is no UTF-8.
void requireUtf8(const std::string& option, const std::string& text);

} // namespace vitrine::app
