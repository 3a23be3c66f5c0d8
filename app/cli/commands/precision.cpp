// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addPrecision(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(
        app, line, "precision", "precision", false,
        "Compare formats: the error of each weight, and what it does to the probabilities of a text",
        "vitrine precision --model ./llama-3.1-8b --formats fp8,int4:32,int4:128 --session precision.vitrine");
}

} // namespace vitrine::app
