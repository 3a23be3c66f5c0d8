// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/run_devices.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/quoted_text.h"
#include "base/thread_pool.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/experiment.h"
#include "kernels/context/context_options.h"
#include "kernels/context/thread_ranks.h"
#include "kernels/cuda/kept_state.h"

namespace vitrine::engine {

namespace {

/// "0,1" as numbers. Throws BadInput.
std::vector<int> devicesNamed(const std::string& text) {
    std::vector<int> out;
    const char* at = text.data();
    const char* const end = text.data() + text.size();
    for (;;) {
        int number = -1;
        const auto [after, error] = std::from_chars(at, end, number);
        if (error != std::errc{} || number < 0 || (after != end && *after != ',')) {
            throw base::BadInput(
                fmt::format("devices: {} is no list of devices; give numbers as 0,1", base::quotedText(text)));
        }
        out.push_back(number);
        if (after == end) {
            return out;
        }
        at = after + 1;
    }
}

/// Threads of each CPU rank: its part of those asked for, or of the machine's.
int threadsOfRank(int threads, int ranks) {
    const int all = threads > 0 ? threads : base::ThreadPool(0).threads();
    return std::max(1, all / ranks);
}

} // namespace

ParallelShape parallelShape(const Experiment& experiment) {
    ParallelShape shape;
    if (experiment.has("tp")) {
        shape.tensor = static_cast<int>(experiment.integer("tp"));
    }
    if (experiment.has("ep")) {
        shape.expert = static_cast<int>(experiment.integer("ep"));
    }
    return shape;
}

void checkDevices(const Experiment& experiment, bool onHost) {
    if (!experiment.has("devices") || experiment.text("devices").empty()) {
        return;
    }
    const std::vector<int> devices = devicesNamed(experiment.text("devices"));
    const int ranks = parallelShape(experiment).ranks();
    if (std::ssize(devices) != ranks) {
        throw base::BadInput(fmt::format("devices: {} {} named for {} {}; name one for each, or leave devices out",
                                         devices.size(), devices.size() == 1 ? "is" : "are", ranks,
                                         ranks == 1 ? "rank" : "ranks"));
    }
    if (onHost && std::ranges::any_of(devices, [](int each) { return each != 0; })) {
        throw base::BadInput("devices: ranks on the CPU are threads of device 0; leave devices out");
    }
}

RunDevices::RunDevices(const kernels::ContextOptions& options, ParallelShape shape) {
    std::vector<kernels::ContextOptions> ranks(static_cast<std::size_t>(shape.ranks()), options);
    if (ranks.size() > 1) {
        if (options.kept != nullptr) {
            options.kept->releaseWeights();
        }
        for (kernels::ContextOptions& each : ranks) {
            each.threads = threadsOfRank(options.threads, shape.ranks());
            each.kept = nullptr; // it has room for the weights of one context
        }
    }
    group_ = std::make_unique<kernels::DeviceGroup>(ranks);
}

RunDevices::RunDevices(const kernels::ContextOptions& options, ParallelShape shape, int rank) {
    kernels::ContextOptions only = options;
    if (shape.ranks() > 1) {
        lone_ = kernels::makeLoneRank(rank, shape.ranks());
        only.communicator = lone_.get();
    }
    group_ = std::make_unique<kernels::DeviceGroup>(std::span(&only, 1));
}

} // namespace vitrine::engine
