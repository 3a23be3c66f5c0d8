// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addConvert(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "convert", "convert", false,
                       "Write a model with its weights in another format, and the error of each",
                       "vitrine convert --model ./llama-3.1-8b --to int4 --group-size 32 --output ./llama-3.1-8b-int4");
}

} // namespace vitrine::app
