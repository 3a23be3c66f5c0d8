// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addLogits(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(
        app, line, "logits", "logits", false, "One forward pass over token ids; writes float32 logits",
        "vitrine logits --model ./my-model --tokens-file tokens.safetensors --output logits.safetensors");
}

} // namespace vitrine::app
