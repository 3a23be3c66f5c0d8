// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addGenerate(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "generate", "generate", false, "Generate text from a prompt, a chat or token ids",
                       "vitrine generate --model ./my-model --prompt \"Why is the sky blue?\" --max-new-tokens 64 "
                       "--session sky.vitrine");
}

} // namespace vitrine::app
