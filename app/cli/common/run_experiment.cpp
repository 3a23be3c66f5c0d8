// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/common/run_experiment.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

#include "app/cli/common/interrupt.h"
#include "app/runner/host/run_host.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "engine/workload/common/result_text.h"
#include "engine/workload/experiment/ending_words.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"
#include "engine/workload/planner/plan_advice.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr std::size_t kMostChanges = 6; ///< that a plan which does not fit is told

/// Turns the lines of a run into what a person sees while it runs. Called on the run's thread.
class RunDisplay {
public:
    explicit RunDisplay(bool quiet) : quiet_(quiet) {}

    void take(const json& message) {
        const std::string type = message.value("type", "");
        if (type == "progress" && !streaming_) {
            bar_.show(message.value("what", ""), message.value("done", std::uint64_t{0}),
                      message.value("total", std::uint64_t{0}));
        } else if (type == "token" && !quiet_) {
            token(message);
        } else if (type == "ended") {
            bar_.clear();
            if (streaming_) {
                printOut("\n");
            }
        }
    }

private:
    void token(const json& message) {
        const std::string text = message.value("text", "");
        if (text.empty()) {
            return;
        }
        bar_.clear();
        const std::string channel = message.value("channel", "final");
        const int request = message.value("request", 0);
        std::string out;
        if (channel != channel_ || request != request_) {
            // Marks where a harmony model's reasoning ends, and whose text follows in a batch.
            out = streaming_ ? "\n" : "";
            if (request > 0 || request_ > 0) {
                out += fmt::format("[request {}] ", request);
            }
            const bool plain = (channel == "final" || channel.empty()) && channel_.empty();
            out += plain ? "" : fmt::format("[{}]\n", channel.empty() ? "final" : channel);
        }
        channel_ = channel.empty() ? "final" : channel;
        request_ = request;
        streaming_ = true;
        printOut(out + text);
    }

    bool quiet_; ///< tokens are not shown
    bool streaming_ = false;
    std::string channel_;
    int request_ = 0;
    ProgressBar bar_;
};

/// Beside the answer, which stays as it is for scripts: a line on a terminal, else one for -v.
void noteEnding(const json& metrics, const engine::Experiment& experiment) {
    const std::string words = metrics.is_object() ? engine::endingWords(metrics, experiment) : std::string();
    if (words.empty()) {
        return;
    }
    if (::isatty(STDERR_FILENO) == 1) {
        printErrorText(fmt::format("({})\n", words));
    } else {
        base::logInfo(words);
    }
}

bool isPlanThatDoesNotFit(const engine::Experiment& experiment, const RunOutcome& outcome) {
    const json metrics = json::parse(outcome.metricsJson, nullptr, false);
    return experiment.isPlan() && outcome.status == RunOutcome::Status::Done && metrics.is_object() &&
           !metrics.value(engine::result::kFits.key, true);
}

/// What would make a plan fit; nothing where the search was interrupted, because the plan itself is done.
std::optional<engine::PlanAdvice> searchAdvice(const engine::Experiment& planned, const base::StopToken& stop) {
    ProgressBar bar;
    bar.show("Searching for what would fit", 0, 0);
    try {
        return engine::planAdvice(planned, kMostChanges, stop);
    } catch (const base::Cancelled&) {
        return std::nullopt;
    }
}

} // namespace

int runAndPrint(const engine::Experiment& experiment, const std::string& sessionFile, const GlobalOptions& options) {
    // Answers of many requests at once cannot be read as they come.
    RunDisplay display(options.json || experiment.workload().manyAnswers);
    const std::unique_ptr<RunHost> host = RunHost::inProcess();
    base::StopSource stop;
    const InterruptGuard interrupt([&host, &stop] {
        host->stop();
        stop.request_stop();
    });
    host->start(experiment, sessionFile, [&display](const json& message) { display.take(message); });
    RunOutcome outcome = host->wait();
    if (!isPlanThatDoesNotFit(experiment, outcome)) {
        return printOutcome(outcome, experiment, sessionFile, options);
    }
    const std::optional<engine::PlanAdvice> advice = searchAdvice(experiment, stop.get_token());
    if (advice && options.json) {
        json metrics = json::parse(outcome.metricsJson);
        metrics["changes"] = engine::planAdviceJson(*advice, experiment);
        outcome.metricsJson = metrics.dump();
    }
    const int code = printOutcome(outcome, experiment, sessionFile, options);
    if (advice && !options.json) {
        printOut("\n" + engine::planAdviceText(*advice, experiment));
    }
    return code;
}

int printOutcome(const RunOutcome& outcome, const engine::Experiment& experiment, const std::string& sessionFile,
                 const GlobalOptions& options) {
    const bool done = outcome.status == RunOutcome::Status::Done;
    if (!done) {
        const bool saved = outcome.run > 0 && outcome.status == RunOutcome::Status::Cancelled;
        printError(
            !outcome.unsaved.empty() ? fmt::format("{}; {}", outcome.error, outcome.unsaved)
            : saved ? fmt::format("{}; what was done is saved as run {} of {}", outcome.error, outcome.run, sessionFile)
                    : outcome.error);
    }
    const json metrics = json::parse(outcome.metricsJson, nullptr, false);
    if (options.json) {
        printJson(
            metrics.is_object()
                ? metrics
                : json{{"error", {{"kind", base::errorKindName(outcome.errorKind)}, {"message", outcome.error}}}});
    } else if (done) {
        printOut(engine::resultText(experiment, metrics));
        noteEnding(metrics, experiment);
        if (outcome.run > 0 && outcome.unsaved.empty()) {
            base::logInfo(fmt::format("saved as run {} of {}", outcome.run, sessionFile));
        }
    }
    if (done && !outcome.unsaved.empty()) {
        printError(outcome.unsaved);
    }
    return outcome.exitCode;
}

void runWhenChosen(CLI::App& command, CommandLine& line, std::shared_ptr<ExperimentOptions> experiment) {
    command.callback([&command, &line, experiment = std::move(experiment)] {
        if (!command.get_subcommands().empty()) {
            return; // the command below it has set its own action
        }
        line.action = [&line, experiment] {
            const engine::Experiment value = experiment->experiment();
            if (experiment->dumpSpec()) {
                printOut(value.toJson().dump(2, ' ', false, json::error_handler_t::replace) + "\n");
                return 0;
            }
            return runAndPrint(value, experiment->sessionFile(), line.options);
        };
    });
}

CLI::App* addWorkloadCommand(CLI::App& app, CommandLine& line, const std::string& name, const std::string& workload,
                             bool plan, const std::string& description, const std::string& example) {
    CLI::App* command = addCommand(app, name, description, example);
    runWhenChosen(*command, line, std::make_shared<ExperimentOptions>(*command, workload, plan));
    return command;
}

} // namespace vitrine::app
