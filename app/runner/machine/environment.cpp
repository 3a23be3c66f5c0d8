// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/environment.h"

#include <array>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/utsname.h>

#include "engine/workload/common/run_setup.h"
#include "kernels/core/device_traits.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/kernel_library.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

std::string cpuName() {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with("model name")) {
            const std::size_t colon = line.find(": ");
            return colon == std::string::npos ? line : line.substr(colon + 2);
        }
    }
    return "unknown";
}

json traitsJson(const kernels::DeviceTraits& traits) {
    return {{"id", traits.id},
            {"name", traits.name},
            {"arch", traits.arch},
            {"memory_bytes", traits.memoryBytes},
            {"untracked_bytes", traits.untrackedBytes},
            {"multiprocessors", traits.multiprocessors},
            {"memory_bandwidth", traits.memoryBandwidth}};
}

/// What the driver says about a GPU; a missing one is refused when the run begins.
json deviceJson(int ordinal) {
    for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
        if (device.ordinal == ordinal) {
            const std::string profile = engine::profileOfDevice(device.name);
            kernels::DeviceTraits traits;
            if (!profile.empty()) {
                traits = kernels::loadDeviceProfile(profile);
            }
            traits.id = profile.empty() ? "cuda" : profile;
            traits.name = device.name;
            traits.arch = kernels::archOf(device).name;
            traits.memoryBytes = device.memoryBytes;
            traits.multiprocessors = device.multiprocessors;
            return traitsJson(traits);
        }
    }
    return nullptr;
}

} // namespace

std::string_view programVersion() {
    return VITRINE_VERSION;
}

json machineEnvironment() {
    utsname system{};
    ::uname(&system);
    const kernels::DeviceTraits cpu = kernels::cpuTraits(0);
    return {{"program", fmt::format("vitrine {}", programVersion())},
            {"host", std::string(system.nodename)},
            {"os", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
            {"cpu", cpuName()},
            {"cores", cpu.multiprocessors},
            {"simd", cpu.arch},
            {"memory_bytes", cpu.memoryBytes}};
}

std::string_view chosenBackend(const engine::Experiment& experiment) {
    return kernels::backendName(engine::backendOf(experiment));
}

json runEnvironment(const engine::Experiment& experiment) {
    json result = machineEnvironment();
    const kernels::Backend backend = engine::backendOf(experiment);
    const bool meta = backend == kernels::Backend::Meta;
    result["backend"] = kernels::backendName(backend);
    result["time_base"] = meta ? "virtual" : "monotonic";
    const bool pricesCpu = meta && experiment.text("backend") == "cpu";
    if (backend == kernels::Backend::Cuda) {
        result["device"] = deviceJson(static_cast<int>(experiment.integer("device")));
    } else if (experiment.has("device_profile") || (meta && !pricesCpu)) {
        result["device"] = traitsJson(engine::profileTraits(experiment));
    } else {
        result["device"] = traitsJson(kernels::cpuTraits(static_cast<int>(experiment.integer("threads"))));
    }
    return result;
}

} // namespace vitrine::app
