// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What profiling of a GPU this machine allows, found out without touching the device.

#include <string>
#include <vector>

namespace vitrine::profiler {

struct GpuReadiness {
    std::string name; ///< "device times of kernels (CUPTI)"
    bool ready = false;
    std::string reason; ///< one sentence with the remedy; empty when ready
};

std::vector<GpuReadiness> gpuReadiness();

/// Empty where hardware counters may be read: by administrators, or by everyone where the driver's module allows it.
/// `driverParameters` and `processStatus` are the texts of /proc/driver/nvidia/params and /proc/self/status.
std::string whyNoCounters(const std::string& driverParameters, const std::string& processStatus);

/// One sentence: why CUPTI's records, or with `counters` its sampling of hardware counters, are not to be had; else
/// empty.
std::string whyNoCupti(bool counters);

} // namespace vitrine::profiler
