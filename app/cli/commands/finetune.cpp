// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addFinetune(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "finetune", "finetune", false,
                       "Train a model: all weights, or an adapter (LoRA, QLoRA)",
                       "vitrine finetune --model ./my-model --data chats.jsonl --train attention --rank 16 --output "
                       "./my-adapter --session tuning.vitrine");
}

} // namespace vitrine::app
