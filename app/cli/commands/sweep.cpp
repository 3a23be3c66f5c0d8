// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine sweep: one experiment with several values of some options, one run after the other.

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/cli/commands/commands.h"
#include "app/cli/common/console.h"
#include "app/cli/common/experiment_options.h"
#include "app/cli/common/interrupt.h"
#include "app/runner/sweep/sweep_driver.h"
#include "base/error.h"
#include "base/json_values.h"
#include "base/units.h"
#include "engine/workload/sweep/sweep_table.h"

namespace vitrine::app {

namespace {

using engine::QueuedRun;
using engine::QueueState;
using nlohmann::json;

constexpr int kInterrupted = 130;
constexpr int kSomeFailed = 1;

struct SweepWords {
    std::vector<std::string> vary;
    std::string rule, order = "as-given", name;
    bool resume = false;
    const CLI::Option* spec = nullptr;
};

std::string sweepName(const SweepWords& words) {
    if (!words.name.empty()) {
        return words.name;
    }
    const std::string file = words.spec->as<std::string>();
    return file == "-" ? "sweep" : std::filesystem::path(file).stem().string();
}

engine::SweepPlan planOf(const SweepWords& words, const engine::Experiment& base) {
    if (base.isPlan()) {
        throw base::BadInput("plan: a sweep runs its experiments; take plan out of the file");
    }
    engine::SweepPlan plan;
    plan.name = sweepName(words);
    plan.base = base.jsonText();
    for (const std::string& text : words.vary) {
        engine::SweepOption option = engine::parseSweepOption(base.workload(), text);
        if (std::ranges::find(plan.options, option.key, &engine::SweepOption::key) != plan.options.end()) {
            throw base::BadInput(fmt::format("--vary: {} is there twice; give all of its values at once", option.key));
        }
        plan.options.push_back(std::move(option));
    }
    plan.order = engine::sweepOrderByName(words.order).value();
    if (!words.rule.empty()) {
        plan.rule = engine::parseStopRule(words.rule);
    }
    return plan;
}

std::string secondsText(double seconds) {
    constexpr double kNs = 1e9;
    return base::formatDuration(static_cast<std::int64_t>(seconds * kNs));
}

/// What one run came to, in a line.
std::string endLine(const QueuedRun& run) {
    std::string out = fmt::format("#{} {}: {}", run.number, run.name, engine::queueStateWords(run.state));
    const std::string_view measure = run.earnsRewards ? "reward" : "loss";
    if (!run.reason.empty()) {
        out += ", " + run.reason;
    } else if (!run.evaluations.empty()) {
        out += fmt::format(", evaluation {} {:.4f} at step {}", measure, run.evaluations.back().value,
                           run.evaluations.back().step);
    } else if (run.value) {
        out += fmt::format(", {} {:.4f} after {} steps", measure, *run.value, run.step);
    }
    constexpr double kMs = 1000;
    out += fmt::format(" ({})", secondsText(static_cast<double>(run.endedMs - run.startedMs) / kMs));
    return out + "\n";
}

std::string heldBackLine(const QueuedRun& run) {
    const engine::QueuePrice& price = *run.price;
    std::string out = fmt::format("#{} {}: does not fit, needs {} of {}", run.number, run.name,
                                  base::formatBytes(price.peak), base::formatBytes(price.budget));
    if (price.nearestSpec.empty()) {
        out += price.nearest.empty() ? "; no change or pair fits" : "; " + price.nearest;
    } else {
        out += fmt::format("; nearest change: {}, {}", price.nearest, base::formatBytes(price.nearestPeak));
        out += price.nearestTime > 0 ? fmt::format(", {:+.1f} % time", (price.nearestTime - 1) * 100) : "";
    }
    return out + "\n";
}

/// A line a run, columns as wide as they must be.
std::string tableText(const engine::RunQueue& queue, const std::string& sweep) {
    const engine::SweepTable table = engine::sweepTable(queue, sweep);
    std::vector<std::vector<std::string>> cells{{"run"}};
    for (const auto& [key, value] : table.rows.front().values) {
        cells.front().push_back(key);
    }
    for (const std::string_view head : {table.measure(), std::string_view(table.rewards ? "below best" : "above best"),
                                        std::string_view("steps"), std::string_view("state")}) {
        cells.front().emplace_back(head);
    }
    for (const engine::SweepRow& row : table.rows) {
        std::vector<std::string>& line = cells.emplace_back();
        line.push_back(fmt::format("#{}", row.number));
        for (const auto& [key, value] : row.values) {
            line.push_back(value);
        }
        line.push_back(row.value ? fmt::format("{:.4f}", *row.value) : "-");
        line.push_back(!row.behindBest       ? "-"
                       : *row.behindBest > 0 ? fmt::format("{}{:.4f}", table.rewards ? "-" : "+", *row.behindBest)
                                             : "=");
        line.push_back(std::to_string(row.steps));
        line.emplace_back(row.best ? "best" : engine::queueStateWords(row.state));
    }
    std::vector<std::size_t> widths(cells.front().size());
    for (const auto& line : cells) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            widths[i] = std::max(widths[i], line[i].size());
        }
    }
    std::string out;
    for (const auto& line : cells) {
        for (std::size_t i = 0; i < line.size(); ++i) {
            const bool last = i + 1 == line.size();
            out += last ? line[i] + "\n" : fmt::format("{:<{}}  ", line[i], widths[i]);
        }
    }
    return out;
}

json resultJson(const SweepDriver& driver, const std::string& sweep) {
    const engine::SweepTable table = engine::sweepTable(driver.queue(), sweep);
    json runs = json::array();
    for (const engine::SweepRow& row : table.rows) {
        const QueuedRun& run = *driver.queue().find(row.number);
        json one = {{"number", row.number},
                    {"run", row.run},
                    {"name", run.name},
                    {"spec", base::parsedObject(run.spec)},
                    {"status", engine::queueStateWords(row.state)},
                    {"metrics", base::parsedObject(driver.metrics(row.number))}};
        if (row.value) {
            one[table.rewards ? "reward" : "loss"] = *row.value;
            one[table.rewards ? "reward_step" : "loss_step"] = row.valueStep;
        }
        if (row.behindBest) {
            one[table.rewards ? "below_best" : "above_best"] = *row.behindBest;
        }
        if (!run.reason.empty()) {
            one["reason"] = run.reason;
        }
        if (run.state == QueueState::DoesNotFit && run.price) {
            one["needed_bytes"] = run.price->peak;
            one["nearest_change"] = run.price->nearest;
        }
        runs.push_back(std::move(one));
    }
    return {{"sweep", sweep}, {"evaluated", table.evaluated}, {"runs", std::move(runs)}};
}

/// What a person sees while it runs. Lines go to standard output, the bar to a terminal.
class SweepDisplay {
public:
    explicit SweepDisplay(bool quiet) : quiet_(quiet) {}

    SweepListener listener() {
        SweepListener out;
        out.priced = [this](const QueuedRun& run) {
            if (run.state == QueueState::DoesNotFit) {
                print(heldBackLine(run));
            }
        };
        out.started = [this](const QueuedRun& run) { name_ = fmt::format("#{} {}", run.number, run.name); };
        out.ended = [this](const QueuedRun& run) { print(endLine(run)); };
        out.broughtBack = [this](const QueuedRun& run, const std::string& what) {
            print(fmt::format("#{} {}: its process was lost, so it {}\n", run.number, run.name, what));
        };
        out.progress = [this](const std::string& what, std::uint64_t done, std::uint64_t total) {
            bar_.show(name_ + ": " + what, done, total);
        };
        return out;
    }
    void clear() { bar_.clear(); }

private:
    void print(const std::string& line) {
        bar_.clear();
        if (!quiet_) {
            printOut(line);
        }
    }

    bool quiet_;
    std::string name_;
    ProgressBar bar_;
};

int exitCodeOf(const engine::RunQueue& queue, const std::string& sweep, bool interrupted) {
    if (interrupted) {
        return kInterrupted;
    }
    const std::vector<const QueuedRun*> runs = queue.runsOf(sweep);
    const bool allDone = std::ranges::all_of(runs, [](const QueuedRun* run) { return engine::isDone(run->state); });
    return allDone ? 0 : kSomeFailed;
}

int runSweep(const SweepWords& words, const ExperimentOptions& experiment, const GlobalOptions& options) {
    const engine::SweepPlan plan = planOf(words, experiment.experiment());
    if (words.resume && experiment.sessionFile().empty()) {
        throw base::BadInput("--resume: name the session that holds the sweep; write --session FILE");
    }
    if (experiment.dumpSpec()) {
        json specs = json::array();
        for (const engine::SweepRun& run : engine::sweepRuns(plan)) {
            specs.push_back(run.experiment.toJson());
        }
        printOut(specs.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
        return 0;
    }
    SweepDisplay display(options.json);
    // A run that takes its process with it must not end the sweep.
    const std::unique_ptr<RunHost> host =
        RunHost::inWorker(std::filesystem::read_symlink("/proc/self/exe").string(), std::chrono::seconds(0));
    SweepDriver driver(*host, experiment.sessionFile(), display.listener());
    const InterruptGuard interrupt([&driver] { driver.stopAfterRun(); });
    std::string sweep = plan.name;
    if (words.resume) {
        driver.resume(plan);
    } else {
        sweep = driver.add(plan);
    }
    driver.run(sweep);
    display.clear();
    if (options.json) {
        printJson(resultJson(driver, sweep));
    } else {
        printOut("\n" + tableText(driver.queue(), sweep) + engine::sweepSentence(driver.queue(), sweep) + "\n");
        if (driver.queue().paused()) {
            printError("the sweep was paused: " + driver.queue().pauseReason());
        }
    }
    return exitCodeOf(driver.queue(), sweep, interrupt.interrupted());
}

} // namespace

void addSweep(CLI::App& app, CommandLine& line) {
    CLI::App* command = addCommand(
        app, "sweep", "Run an experiment file once for each combination of values, and compare the runs",
        "vitrine sweep tune.json --vary \"lr=1e-5..4e-4 x2\" --vary rank=8,16 --stop-rule above=0.1,from=150 "
        "--session tune.vitrine\n"
        "A run that does not fit is held back, one that fails does not stop the rest (three in a row do). Ctrl-C ends "
        "after the run that is going on.\n"
        "Exit codes: 0 all runs are done, 1 some failed, were held back or have not run, 2 wrong input, 130 ended by "
        "Ctrl-C.");
    auto options = std::make_shared<ExperimentOptions>(*command, "", false);
    options->takeSpecPositional();
    auto words = std::make_shared<SweepWords>();
    words->spec = command->get_option("spec");
    command->add_option("--vary", words->vary, "An option and its values: V1,V2,.. or FIRST..LAST xFACTOR or +STEP")
        ->type_name("KEY=VALUES")
        ->required()
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    command
        ->add_option(
            "--stop-rule", words->rule,
            "End a run whose evaluation loss is more than LOSS above the best at the same step (with rl: whose "
            "evaluation reward is that much below it), not before step STEP")
        ->type_name("above=LOSS,from=STEP");
    command->add_option("--order", words->order, "Which runs come first")
        ->check(CLI::IsMember({"as-given", "middle-out"}))
        ->capture_default_str();
    command->add_option("--name", words->name, "Name of the sweep (default: that of the file)")->type_name("TEXT");
    command->add_flag("--resume", words->resume,
                      "Go on with the sweep of this name in the session: runs that have ended stay as they are");
    command->callback([&line, options, words] {
        line.action = [&line, options, words] { return runSweep(*words, *options, line.options); };
    });
}

} // namespace vitrine::app
