// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands.h"
#include "app/cli/run_experiment.h"

namespace vitrine::app {

void addPlan(CLI::App& app, CommandLine& line) {
    CLI::App* plan =
        addCommand(app, "plan", "Price a workload on a device without running it: memory, time, does it fit",
                   "vitrine plan generate --model synthetic:gpt-oss-20b --device-profile rtx-4090 "
                   "--prompt-length 32768");
    addWorkloadCommand(*plan, line, "generate", "generate", true, "Memory and time of a generation",
                       "vitrine plan generate --model synthetic:gpt-oss-20b --prompt-length 131072 --json");
    addWorkloadCommand(*plan, line, "load", "load", true, "Memory and time of loading a model",
                       "vitrine plan load --model synthetic:gpt-oss-20b --weights both --json");
    addWorkloadCommand(*plan, line, "batch", "batch", true, "Memory and time of serving a trace of requests",
                       "vitrine plan batch --model synthetic:gpt-oss-20b --trace uniform --slots 16 --json");
}

} // namespace vitrine::app
