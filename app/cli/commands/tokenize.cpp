// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <memory>
#include <vector>

#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addTokenize(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "tokenize", "Text to token ids and back",
                                   "vitrine tokenize --model ./my-model \"Hello world\"");
    auto options = std::make_shared<ExperimentOptions>(*command, "tokenize", false, std::vector<std::string>{"text"});
    options->addPositional("text", "TEXT");
    runWhenChosen(*command, line, std::move(options));
}

} // namespace vitrine::app
