// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// vitrine bench rates: how long ops take on this device, as a file that plans for such a device read.

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "app/cli/commands/bench_commands.h"
#include "app/cli/common/console.h"
#include "app/cli/common/interrupt.h"
#include "app/runner/rates/rate_measurement.h"
#include "base/error.h"
#include "base/json_values.h"
#include "base/stop.h"
#include "kernels/cuda/cuda_context.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr int kInterruptedExit = 130;
constexpr double kUsableShare = 0.9; ///< of a device's memory: the rest is its driver's and other programs'

struct RateWords {
    std::string output, series, session;
    int device = 0;
};

/// What the series is measured on. Without a GPU only a series of one's own runs, on what its experiments name.
struct RateDevice {
    std::string name = "CPU";
    std::uint64_t usableBytes = 0;
};

RateDevice chosenRateDevice(const RateWords& words) {
    for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
        if (device.ordinal == words.device) {
            return {device.name, static_cast<std::uint64_t>(kUsableShare * static_cast<double>(device.memoryBytes))};
        }
    }
    if (words.series.empty()) {
        const std::string why = kernels::whyNoCuda();
        throw base::BadInput(fmt::format(
            "--device: there is no GPU {}{}; the rates of a CPU are kept by each run on it and need no command",
            words.device, why.empty() ? "" : " (" + why + ")"));
    }
    return {};
}

/// The session of the runs: the one that was named, else a file beside the output that is removed at the end.
class RateSession {
public:
    explicit RateSession(const RateWords& words)
        : file_(words.session.empty() ? fmt::format("{}.runs-{}.vitrine", words.output, ::getpid()) : words.session),
          temporary_(words.session.empty()) {}
    RateSession(const RateSession&) = delete; // owns the file
    RateSession& operator=(const RateSession&) = delete;
    ~RateSession() {
        if (temporary_) {
            std::error_code error; // nothing more can be done here
            for (const char* ending : {"", "-wal", "-shm"}) {
                std::filesystem::remove(file_ + ending, error);
            }
        }
    }
    const std::string& file() const { return file_; }

private:
    std::string file_;
    bool temporary_;
};

/// What a person sees meanwhile: a line for each experiment, a bar on a terminal.
class RateDisplay {
public:
    RateDisplay(bool quiet, std::size_t count) : quiet_(quiet), count_(count) {}

    RateListener listener() {
        RateListener out;
        out.started = [this](std::size_t index, const std::string& name) {
            place_ = fmt::format("{} of {}, {}", index + 1, count_, name);
            bar_.show(place_, index, count_);
        };
        out.progress = [this](const std::string& what, std::uint64_t done, std::uint64_t total) {
            bar_.show(place_ + ": " + what, done, total);
        };
        out.ended = [this](const RateRun& run) {
            bar_.clear();
            if (!quiet_) {
                printOut(run.measured ? fmt::format("{}: measured\n", run.name)
                                      : fmt::format("{}: not measured, {}\n", run.name, run.reason));
            }
        };
        return out;
    }

private:
    bool quiet_;
    std::size_t count_;
    std::string place_;
    ProgressBar bar_;
};

std::string endSentence(const RateMeasurement& measured, std::size_t asked, const std::string& device,
                        const std::string& output) {
    return fmt::format("The rates of {} ops on {}, from {} of {} experiments, are in {}.\n", measured.rates.families(),
                       device, measured.measuredRuns(), asked, output);
}

json resultOf(const RateMeasurement& measured, const std::string& device, const std::string& output) {
    json runs = json::array();
    for (const RateRun& run : measured.runs) {
        json one = {{"name", run.name}, {"measured", run.measured}};
        if (!run.reason.empty()) {
            one["reason"] = run.reason;
        }
        if (!run.spec.empty()) {
            one["spec"] = base::parsedObject(run.spec);
            one["metrics"] = base::parsedObject(run.metricsJson);
        }
        runs.push_back(std::move(one));
    }
    return {{"device", device}, {"output", output}, {"ops", measured.rates.families()}, {"runs", std::move(runs)}};
}

int measure(const RateWords& words, const GlobalOptions& options) {
    if (words.output.empty()) {
        throw base::BadInput("--output: name the file that gets the rates");
    }
    base::requireReplaceable(words.output, kRatesOutput); // before minutes of work
    std::vector<RateExperiment> series = readRateSeries(words.series);
    const RateDevice device = chosenRateDevice(words);
    for (RateExperiment& one : series) {
        if (one.experiment.has("device")) {
            one.experiment.set("device", std::int64_t{words.device});
        }
    }
    const RateSession session(words);
    RateDisplay display(options.json, series.size());
    RateOptions measuring;
    measuring.sessionFile = session.file();
    measuring.deviceBytes = device.usableBytes;
    measuring.listener = display.listener();
    measuring.makeHost = [program = std::filesystem::read_symlink("/proc/self/exe").string()] {
        return RunHost::inWorker(program, std::chrono::seconds(0));
    };
    base::StopSource stop;
    const InterruptGuard interrupt([&stop] { stop.request_stop(); });
    const RateMeasurement measured = measureRates(series, measuring, stop.get_token());
    if (measured.rates.empty()) {
        base::throwIfStopped(stop.get_token());
        throw base::BadInput(measured.runs.empty()
                                 ? "bench rates: nothing was measured"
                                 : "bench rates: nothing was measured: " + measured.runs.front().reason);
    }
    writeRates(words.output, device.name, measured.rates);
    if (options.json) {
        printJson(resultOf(measured, device.name, words.output));
    } else {
        printOut(endSentence(measured, series.size(), device.name, words.output));
    }
    return interrupt.interrupted() ? kInterruptedExit : 0;
}

} // namespace

void addBenchRates(CLI::App& bench, CommandLine& line) {
    CLI::App* command = addCommand(
        bench, "rates", "Measure how long ops take on this GPU, for plans of such a GPU",
        "vitrine bench rates --output h200.json\n"
        "Takes a few minutes on a GPU that nothing else uses. Ctrl-C ends it and keeps what was measured. Plans read "
        "the file from resources/device-profiles/rates, under the name of the GPU's profile, or from the place that "
        "\"rates\" of a profile of your own names.");
    auto words = std::make_shared<RateWords>();
    command->add_option("--output", words->output, "File that gets the rates")->type_name("FILE")->required();
    command->add_option("--device", words->device, "Number of the GPU")
        ->type_name("N")
        ->check(CLI::Range(0, 1023))
        ->capture_default_str();
    command
        ->add_option("--series", words->series,
                     "Experiments to measure, a JSON array of {\"name\", \"experiment\"}; unset: those that ship")
        ->type_name("FILE");
    command->add_option("--session", words->session, "Keep the runs in this session file")->type_name("FILE");
    command->callback([&line, words] { line.action = [&line, words] { return measure(*words, line.options); }; });
}

} // namespace vitrine::app
