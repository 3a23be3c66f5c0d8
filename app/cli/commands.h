// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The commands of `vitrine`. Each add function makes one subcommand. When the user chose that command, parsing sets
// CommandLine::action to what it does.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "app/cli/console.h"

namespace vitrine::app {

struct CommandLine {
    GlobalOptions options;
    std::function<int()> action; ///< returns the exit code; may throw base::Error
};

void addDoctor(CLI::App& app, CommandLine& line);
void addRun(CLI::App& app, CommandLine& line);
void addTokenize(CLI::App& app, CommandLine& line);
void addLogits(CLI::App& app, CommandLine& line);
void addGenerate(CLI::App& app, CommandLine& line);
void addBatch(CLI::App& app, CommandLine& line);
void addServe(CLI::App& app, CommandLine& line);
void addLoad(CLI::App& app, CommandLine& line);
void addSynthesize(CLI::App& app, CommandLine& line);
void addPlan(CLI::App& app, CommandLine& line);
void addBench(CLI::App& app, CommandLine& line);
void addSession(CLI::App& app, CommandLine& line);
void addKernels(CLI::App& app, CommandLine& line);
void addMask(CLI::App& app, CommandLine& line);
void addAttention(CLI::App& app, CommandLine& line);
void addWorker(CLI::App& app, CommandLine& line);
void addCompletion(CLI::App& app, CommandLine& line);

/// A subcommand that also takes the global options after its name. Its help ends with `example`.
CLI::App* addCommand(CLI::App& app, const std::string& name, const std::string& description,
                     const std::string& example);

/// The whole program, ready to parse.
void buildCommandLine(CLI::App& app, CommandLine& line);

/// The command that was chosen: the deepest one that was parsed.
const CLI::App* chosenCommand(const CLI::App& app);

/// "vitrine plan generate"
std::string commandPath(const CLI::App& command);

/// A sentence that says what CLI11 refused. For an unknown option or command it names the nearest known one.
std::string usageError(const CLI::App& app, const CLI::ParseError& error);

} // namespace vitrine::app
