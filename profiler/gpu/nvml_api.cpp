// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/nvml_api.h"

#include <fmt/format.h>
#include <vector>

#include "base/shared_library.h"

namespace vitrine::profiler {

namespace {

struct LoadedNvml {
    NvmlApi api;
    std::string missing;
};

template <class Function>
void bind(const base::SharedLibrary& library, Function& function, const char* name, const char* older = nullptr) {
    void* symbol = library.symbol(name);
    if (symbol == nullptr && older != nullptr) {
        symbol = library.symbol(older);
    }
    function = reinterpret_cast<Function>(symbol);
}

LoadedNvml load() {
    LoadedNvml out;
    const std::vector<std::string> names{"libnvidia-ml.so.1"};
    const base::SharedLibrary library = base::SharedLibrary::find(names);
    if (!library.isOpen()) {
        out.missing = "NVML (libnvidia-ml.so.1) was not found; install the NVIDIA driver";
        return out;
    }
    NvmlApi& api = out.api;
    bind(library, api.init, "nvmlInit_v2");
    bind(library, api.errorString, "nvmlErrorString");
    bind(library, api.handleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2");
    bind(library, api.handleByIndex, "nvmlDeviceGetHandleByIndex_v2");
    bind(library, api.memoryInfo, "nvmlDeviceGetMemoryInfo");
    bind(library, api.memoryInfoV2, "nvmlDeviceGetMemoryInfo_v2");
    bind(library, api.utilization, "nvmlDeviceGetUtilizationRates");
    bind(library, api.powerMilliwatts, "nvmlDeviceGetPowerUsage");
    bind(library, api.powerLimitMilliwatts, "nvmlDeviceGetEnforcedPowerLimit");
    bind(library, api.energyMillijoules, "nvmlDeviceGetTotalEnergyConsumption");
    bind(library, api.clockMegahertz, "nvmlDeviceGetClockInfo");
    bind(library, api.clockMaxMegahertz, "nvmlDeviceGetMaxClockInfo");
    bind(library, api.temperature, "nvmlDeviceGetTemperature");
    bind(library, api.clockReasons, "nvmlDeviceGetCurrentClocksEventReasons",
         "nvmlDeviceGetCurrentClocksThrottleReasons");
    // Version 2 has the same layout as version 3; the first one is shorter.
    bind(library, api.computeProcesses, "nvmlDeviceGetComputeRunningProcesses_v3",
         "nvmlDeviceGetComputeRunningProcesses_v2");
    if (api.init == nullptr || api.errorString == nullptr || api.handleByPciBusId == nullptr ||
        api.handleByIndex == nullptr) {
        out.missing = fmt::format("{}: lacks functions of NVML; install a newer NVIDIA driver", library.path());
        return out;
    }
    const NvmlReturn started = api.init();
    if (started != kNvmlSuccess) {
        out.missing = fmt::format("NVML did not start: {}", api.errorString(started));
    }
    return out;
}

const LoadedNvml& loaded() {
    static const LoadedNvml kLoaded = load();
    return kLoaded;
}

} // namespace

const NvmlApi* NvmlApi::find() {
    return loaded().missing.empty() ? &loaded().api : nullptr;
}

const std::string& NvmlApi::whyMissing() {
    return loaded().missing;
}

} // namespace vitrine::profiler
