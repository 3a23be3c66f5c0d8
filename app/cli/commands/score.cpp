// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <memory>
#include <string>
#include <vector>

#include "app/cli/commands/commands.h"
#include "app/cli/common/console.h"
#include "app/cli/common/experiment_options.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addScore(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "score", "How likely a model finds given rows: log-probabilities and entropies",
                                   "vitrine score answers.safetensors --model ./reference --score-tensor "
                                   "reference_logprobs --output scored.safetensors");
    auto options = std::make_shared<ExperimentOptions>(*command, "score", false, std::vector<std::string>{"data"});
    options->addPositional("data", "FILE");
    runWhenChosen(*command, line, options);
}

} // namespace vitrine::app
