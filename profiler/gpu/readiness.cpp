// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/readiness.h"

#include <cstdint>
#include <fstream>
#include <sstream>

#include "base/shared_library.h"
#include "profiler/gpu/nvml_monitor.h"

namespace vitrine::profiler {

namespace {

// linux/capability.h
constexpr unsigned kCapSysAdmin = 21;

std::string textOf(const char* path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string counterProblem() {
    if (std::string why = whyNoCupti(true); !why.empty()) {
        return why;
    }
    const std::vector<std::string> names{"libnvperf_host.so"};
    if (!base::SharedLibrary::find(names).isOpen()) {
        return "libnvperf_host.so, which CUPTI needs for counters, was not found; install the CUDA toolkit, or: "
               "pip install nvidia-cuda-cupti";
    }
    return whyNoCounters(textOf("/proc/driver/nvidia/params"), textOf("/proc/self/status"));
}

} // namespace

std::string whyNoCounters(const std::string& driverParameters, const std::string& processStatus) {
    if (driverParameters.find("RmProfilingAdminOnly: 1") == std::string::npos) {
        return {};
    }
    const std::size_t line = processStatus.find("CapEff:");
    std::uint64_t capabilities = 0;
    if (line != std::string::npos) {
        std::istringstream value(processStatus.substr(line + 7));
        value >> std::hex >> capabilities;
    }
    if ((capabilities >> kCapSysAdmin & 1U) != 0) {
        return {};
    }
    return "the driver lets only administrators read hardware counters; load its module with "
           "NVreg_RestrictProfilingToAdminUsers=0, or run with CAP_SYS_ADMIN";
}

std::vector<GpuReadiness> gpuReadiness() {
    std::vector<GpuReadiness> rows;
    const auto add = [&](const char* name, std::string reason) {
        rows.push_back({name, reason.empty(), std::move(reason)});
    };
    add("device times of kernels (CUPTI)", whyNoCupti(false));
    std::string why;
    NvmlMonitor::open("", why);
    add("power, clocks and memory (NVML)", why);
    add("hardware counters over time (CUPTI PM sampling)", counterProblem());
    return rows;
}

} // namespace vitrine::profiler
