// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/rates/rate_measurement.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "app/runner/host/outcome.h"
#include "app/runner/recording/run_rates.h"
#include "app/runner/recording/stored_timeline.h"
#include "base/error.h"
#include "base/percentile.h"
#include "sessions/session_file.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Stops the run of a host when the whole measurement is to stop.
class StopWatch {
public:
    StopWatch(RunHost& host, const base::StopToken& stop) : callback_(stop, [&host] { host.stop(); }) {}

private:
    std::stop_callback<std::function<void()>> callback_;
};

bool looksLikeRates(std::string_view head) {
    return head.starts_with("{\"device\":") && head.find("\"launch\":") != std::string_view::npos;
}

kernels::OpRates ratesOfRun(const std::string& sessionFile, std::int64_t run, const engine::Experiment& experiment) {
    const auto session = sessions::SessionFile::open(sessionFile, sessions::OpenMode::ReadOnly);
    return ratesOf(*loadTimeline(*session, run), rateClassesOf(experiment));
}

/// Whether kernels were compiled in a run: they come late then, and steps that wait for them say nothing.
bool compiledKernels(const RunOutcome& outcome) {
    const json metrics = json::parse(outcome.metricsJson, nullptr, false);
    return metrics.is_object() && metrics.value("kernel_compiler_seconds", 0.0) > 0;
}

RunOutcome runOnce(const engine::Experiment& experiment, const RateOptions& options, const base::StopToken& stop) {
    const std::unique_ptr<RunHost> host = options.makeHost();
    host->start(experiment, options.sessionFile, [&](const json& message) {
        if (options.listener.progress && message.value("type", "") == "progress") {
            options.listener.progress(message.value("what", ""), message.value("done", std::uint64_t{0}),
                                      message.value("total", std::uint64_t{0}));
        }
    });
    const StopWatch watch(*host, stop); // a stop before the start would be forgotten
    return host->wait();
}

RateRun measureOne(const RateExperiment& one, const RateOptions& options, const base::StopToken& stop,
                   std::vector<kernels::OpRates>& rates) {
    RateRun out{one.name, false, {}, {}, {}};
    try {
        const auto fitted = options.deviceBytes == 0 ? std::optional(one.experiment)
                                                     : fittedToDevice(one.experiment, options.deviceBytes, stop);
        if (!fitted) {
            out.reason = "not even two layers of it fit on this device";
            return out;
        }
        out.spec = fitted->jsonText();
        RunOutcome outcome = runOnce(*fitted, options, stop);
        if (outcome.exitCode == 0 && compiledKernels(outcome)) {
            outcome = runOnce(*fitted, options, stop); // it finds them in the cache
        }
        out.metricsJson = outcome.metricsJson;
        if (outcome.exitCode != 0) {
            out.reason = oneLine(outcome.error.empty() ? outcome.unsaved : outcome.error);
            return out;
        }
        rates.push_back(ratesOfRun(options.sessionFile, outcome.run, *fitted));
        out.measured = !rates.back().empty();
        out.reason = out.measured ? "" : "no op of it was recorded";
    } catch (const base::Error& error) {
        out.reason = oneLine(error.what());
    }
    return out;
}

/// The medians of what runs measured: a few runs wait for something that most do not wait for.
kernels::LaunchCost usualCost(const std::vector<kernels::OpRates>& runs, kernels::LaunchKind kind) {
    std::vector<kernels::LaunchCost> costs;
    for (const kernels::OpRates& run : runs) {
        if (run.launch(kind).steps > 0) {
            costs.push_back(run.launch(kind));
        }
    }
    const auto median = [&](const auto& field) {
        std::vector<double> values;
        std::ranges::transform(costs, std::back_inserter(values), field);
        return base::median(std::move(values));
    };
    kernels::LaunchCost usual{median(&kernels::LaunchCost::gap),   median(&kernels::LaunchCost::host),
                              median(&kernels::LaunchCost::step),  median(&kernels::LaunchCost::first),
                              median(&kernels::LaunchCost::steps), median(&kernels::LaunchCost::layers)};
    if (usual.layers > 0) { // deep models take longer
        usual.first = usual.layers * median([](const kernels::LaunchCost& cost) {
                          return cost.layers > 0 ? cost.first / cost.layers : 0;
                      });
    }
    usual.steps *= static_cast<double>(costs.size());
    return usual;
}

kernels::OpRates joined(const std::vector<kernels::OpRates>& runs) {
    kernels::OpRates rates;
    for (const kernels::OpRates& run : runs) {
        rates.join(run);
    }
    for (std::size_t kind = 0; kind < kernels::kLaunchKindNames.size(); ++kind) {
        rates.setSteps(static_cast<kernels::LaunchKind>(kind), usualCost(runs, static_cast<kernels::LaunchKind>(kind)));
    }
    return rates;
}

} // namespace

const base::OutputKind kRatesOutput{"a file of rates", "", looksLikeRates};

std::size_t RateMeasurement::measuredRuns() const {
    return static_cast<std::size_t>(std::ranges::count_if(runs, &RateRun::measured));
}

RateMeasurement measureRates(const std::vector<RateExperiment>& series, const RateOptions& options,
                             const base::StopToken& stop) {
    RateMeasurement out;
    std::vector<kernels::OpRates> rates;
    for (std::size_t i = 0; i < series.size() && !stop.stop_requested(); ++i) {
        if (options.listener.started) {
            options.listener.started(i, series[i].name);
        }
        out.runs.push_back(measureOne(series[i], options, stop, rates));
        if (options.listener.ended) {
            options.listener.ended(out.runs.back());
        }
    }
    out.rates = joined(rates);
    return out;
}

void writeRates(const std::string& path, const std::string& device, const kernels::OpRates& rates) {
    base::requireReplaceable(path, kRatesOutput);
    json value = rates.toJson();
    value["device"] = device;
    base::writeOutput(path, [&](std::ostream& out) { out << value.dump() << '\n'; });
}

} // namespace vitrine::app
