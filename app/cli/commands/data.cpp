// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine data: what a fine-tuning run would train on.

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "app/cli/commands/commands.h"
#include "app/cli/common/console.h"
#include "app/cli/common/experiment_options.h"
#include "app/cli/common/interrupt.h"
#include "base/output_file.h"
#include "engine/workload/finetune/data_summary.h"

namespace vitrine::app {

namespace {

engine::DataSummary summaryOf(const engine::Experiment& experiment) {
    base::StopSource stop;
    const InterruptGuard guard([&stop] { stop.request_stop(); });
    BarSink bar;
    engine::WorkloadSinks sinks;
    sinks.progress = &bar;
    nlohmann::json metrics;
    const engine::Run run{experiment, sinks, stop.get_token(), metrics};
    engine::PrepareWatch watch;
    watch.countTemplate = true;
    const engine::PreparedData data = engine::prepareData(run, engine::openSource(run), watch);
    bar.clear();
    const auto sequences = static_cast<std::int64_t>(data.packed.size());
    return engine::summarizeData(data, engine::sequencesOfStep(experiment, sequences));
}

} // namespace

void addData(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(app, "data", "What a fine-tuning run would train on: rows, tokens, sequences",
                                   "vitrine data chats.jsonl --model ./my-model --sequence-length 4096");
    auto options = std::make_shared<ExperimentOptions>(*command, "finetune", false, std::vector<std::string>{"data"});
    options->addPositional("data", "FILE");
    auto csv = std::make_shared<std::string>();
    command->add_option("--csv", *csv, "Write the table to this file too")->type_name("FILE");
    command->callback([&line, options, csv] {
        line.action = [&line, options, csv] {
            const engine::DataSummary summary = summaryOf(options->experiment());
            if (!csv->empty()) {
                base::writeOutput(*csv, [&](std::ostream& out) { out << engine::dataSummaryCsv(summary); });
            }
            if (line.options.json) {
                printJson(engine::dataSummaryJson(summary));
            } else {
                printOut(engine::dataSummaryText(summary));
            }
            return 0;
        };
    });
}

} // namespace vitrine::app
