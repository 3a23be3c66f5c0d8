// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addSynthesize(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "synthesize", "synthesize", false,
                       "Write a synthetic model as a Hugging Face checkpoint",
                       "vitrine synthesize --model synthetic:tiny-gpt-oss --output ./tiny-gpt-oss");
}

} // namespace vitrine::app
