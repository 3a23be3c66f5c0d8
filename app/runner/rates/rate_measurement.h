// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Measures how fast a device is: runs a series of experiments and joins the times of their ops to rates, which a plan
// for such a device takes instead of its data sheet (kernels/core/op_rates.h).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/runner/host/run_host.h"
#include "app/runner/rates/rate_series.h"
#include "base/output_file.h"
#include "base/stop.h"
#include "kernels/core/op_rates.h"

namespace vitrine::app {

/// A file of rates, as toJson() of OpRates with "device" says it.
extern const base::OutputKind kRatesOutput;

/// How one experiment of the series came out.
struct RateRun {
    std::string name;
    bool measured = false;
    std::string reason; ///< why not, one sentence; empty where it was measured
    std::string spec;   ///< the experiment that ran, JSON; empty: none did
    std::string metricsJson;
};

struct RateMeasurement {
    kernels::OpRates rates;
    std::vector<RateRun> runs;

    std::size_t measuredRuns() const;
};

/// Called on the thread of measureRates(), `progress` also on that of a run.
struct RateListener {
    std::function<void(std::size_t index, const std::string& name)> started;
    std::function<void(const RateRun& run)> ended;
    std::function<void(const std::string& what, std::uint64_t done, std::uint64_t total)> progress;
};

struct RateOptions {
    /// A host for each experiment: a new process starts as that of a later run will, and takes its faults with it.
    std::function<std::unique_ptr<RunHost>()> makeHost;
    std::string sessionFile;       ///< holds the runs
    std::uint64_t deviceBytes = 0; ///< memory that is free on the device; 0: nothing is fitted to it
    RateListener listener;
};

/// Runs the series in its order. A run that fails is named in the result, and the next one starts. After a request to
/// stop the run that is going on ends, and the result has what was measured so far.
RateMeasurement measureRates(const std::vector<RateExperiment>& series, const RateOptions& options,
                             const base::StopToken& stop);

/// Writes the rates of the device called `device`. Replaces a file of its own kind only; throws as writeOutput does.
void writeRates(const std::string& path, const std::string& device, const kernels::OpRates& rates);

} // namespace vitrine::app
