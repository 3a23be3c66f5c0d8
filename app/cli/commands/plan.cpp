// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::app {

void addPlan(CLI::App& app, CommandLine& line) {
    CLI::App* plan =
        addCommand(app, "plan", "Price a workload on a device without running it: memory, time, does it fit",
                   "vitrine plan generate --model synthetic:gpt-oss-20b --device-profile rtx-4090 "
                   "--prompt-length 32768");
    for (const engine::Workload* workload : engine::workloadTable()) {
        if (!workload->planHelp.empty()) {
            const std::string name(workload->name);
            addWorkloadCommand(*plan, line, name, name, true, std::string(workload->planHelp),
                               std::string(workload->planExample));
        }
    }
}

} // namespace vitrine::app
