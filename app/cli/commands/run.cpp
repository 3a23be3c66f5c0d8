// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <memory>

#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addRun(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "run", "Run an experiment file",
                                   "vitrine run experiment.json --set max_new_tokens=32 --session runs.vitrine");
    auto options = std::make_shared<ExperimentOptions>(*command, "", false);
    options->takeSpecPositional();
    runWhenChosen(*command, line, std::move(options));
}

} // namespace vitrine::app
