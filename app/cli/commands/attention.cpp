// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addAttention(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "attention", "attention", false,
                       "Attention with score and mask programs, forward and backward",
                       "vitrine attention --mods my_mods.py --score alibi --mask causal --tensors qkv.safetensors "
                       "--backward --output out.safetensors");
}

} // namespace vitrine::app
