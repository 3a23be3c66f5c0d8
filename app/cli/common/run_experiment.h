// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Shared by all commands that run an experiment: progress, streamed text, Ctrl-C, the result as text or as JSON.

#include <memory>
#include <string>

#include "app/cli/common/command.h"
#include "app/cli/common/experiment_options.h"
#include "app/runner/host/run_host.h"

namespace vitrine::app {

/// Runs `experiment` to its end and prints the result. Returns the exit code.
int runAndPrint(const engine::Experiment& experiment, const std::string& sessionFile, const GlobalOptions& options);

/// Prints how a run ended: a failure's sentence, the result in the form that was asked for. Returns the exit code.
int printOutcome(const RunOutcome& outcome, const engine::Experiment& experiment, const std::string& sessionFile,
                 const GlobalOptions& options);

/// A command that runs one workload with the table's options.
CLI::App* addWorkloadCommand(CLI::App& app, CommandLine& line, const std::string& name, const std::string& workload,
                             bool plan, const std::string& description, const std::string& example);

/// Sets the action of `command` to run what `experiment` says.
void runWhenChosen(CLI::App& command, CommandLine& line, std::shared_ptr<ExperimentOptions> experiment);

} // namespace vitrine::app
