// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/rates/rate_measurement.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "app/runner/host/outcome.h"
#include "app/runner/recording/run_rates.h"
#include "app/runner/recording/stored_timeline.h"
#include "base/error.h"
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
                   kernels::OpRates& rates) {
    RateRun out{one.name, false, {}, {}, {}};
    try {
        const auto fitted = options.deviceBytes == 0 ? std::optional(one.experiment)
                                                     : fittedToDevice(one.experiment, options.deviceBytes, stop);
        if (!fitted) {
            out.reason = "not even two layers of it fit on this device";
            return out;
        }
        out.spec = fitted->jsonText();
        const RunOutcome outcome = runOnce(*fitted, options, stop);
        out.metricsJson = outcome.metricsJson;
        if (outcome.exitCode != 0) {
            out.reason = oneLine(outcome.error.empty() ? outcome.unsaved : outcome.error);
            return out;
        }
        const kernels::OpRates measured = ratesOfRun(options.sessionFile, outcome.run, *fitted);
        out.measured = !measured.empty();
        out.reason = out.measured ? "" : "no op of it was recorded";
        rates.join(measured);
    } catch (const base::Error& error) {
        out.reason = oneLine(error.what());
    }
    return out;
}

} // namespace

const base::OutputKind kRatesOutput{"a file of rates", "", looksLikeRates};

std::size_t RateMeasurement::measuredRuns() const {
    return static_cast<std::size_t>(std::ranges::count_if(runs, &RateRun::measured));
}

RateMeasurement measureRates(const std::vector<RateExperiment>& series, const RateOptions& options,
                             const base::StopToken& stop) {
    RateMeasurement out;
    for (std::size_t i = 0; i < series.size() && !stop.stop_requested(); ++i) {
        if (options.listener.started) {
            options.listener.started(i, series[i].name);
        }
        out.runs.push_back(measureOne(series[i], options, stop, out.rates));
        if (options.listener.ended) {
            options.listener.ended(out.runs.back());
        }
    }
    return out;
}

void writeRates(const std::string& path, const std::string& device, const kernels::OpRates& rates) {
    base::requireReplaceable(path, kRatesOutput);
    json value = rates.toJson();
    value["device"] = device;
    base::writeOutput(path, [&](std::ostream& out) { out << value.dump() << '\n'; });
}

} // namespace vitrine::app
