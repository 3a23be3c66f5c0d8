// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addRl(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(
        app, line, "rl", "rl", false, "Update a model as a policy, on answers with advantages (GRPO)",
        "vitrine rl --model ./my-model --rollouts answers.safetensors --method lora --updates 2 --output "
        "./my-adapter");
}

} // namespace vitrine::app
