// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addBatch(CLI::App& app, CommandLine& line) {
    addWorkloadCommand(app, line, "batch", "batch", false,
                       "Serve a trace of requests with static or continuous batching",
                       "vitrine batch --model ./my-model --trace requests.jsonl --mode continuous --slots 16 "
                       "--outputs answers.jsonl --session batch.vitrine");
}

} // namespace vitrine::app
