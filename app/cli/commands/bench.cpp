// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/cli/commands/bench_commands.h"
#include "app/cli/commands/commands.h"
#include "app/cli/common/run_experiment.h"

namespace vitrine::app {

void addBench(CLI::App& app, CommandLine& line) {
    CLI::App* command =
        addCommand(app, "bench", "Measure this machine against its own ceilings", "vitrine bench cpu-decode --json");
    auto options = std::make_shared<ExperimentOptions>(*command, "bench", false, std::vector<std::string>{"bench"});
    options->addPositional("bench", "NAME");
    options->setModelFallback([](const nlohmann::json& experiment) -> nlohmann::json {
        const nlohmann::json whole = {{"model", "synthetic:gpt-oss-20b"}};
        if (!experiment.contains("bench") || experiment["bench"] == "cpu-decode") {
            // Larger than any cache, small enough for most machines.
            return {{"model", whole["model"]}, {"set", {{"num_hidden_layers", "4"}}}};
        }
        return whole;
    });
    runWhenChosen(*command, line, std::move(options));
    addBenchRates(*command, line);
}

} // namespace vitrine::app
