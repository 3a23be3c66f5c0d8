// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addLoad(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "load", "load", false, "Load a model, nothing more: time, bytes and memory",
                       "vitrine load --model synthetic:tiny-gpt-oss --weights both --json");
}

} // namespace vitrine::app
