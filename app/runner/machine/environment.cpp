// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/environment.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <sys/utsname.h>
#include <system_error>

#include "app/runner/machine/gpu_libraries.h"
#include "app/runner/machine/model_fingerprint.h"
#include "base/error.h"
#include "engine/checkpoint/model_folder.h"
#include "engine/workload/common/run_setup.h"
#include "engine/workload/experiment/results.h"
#include "kernels/core/device_traits.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/kernel_library.h"
#include "profiler/gpu/nvml_monitor.h"

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

std::optional<kernels::CudaDeviceInfo> cudaDevice(int ordinal) {
    for (const kernels::CudaDeviceInfo& device : kernels::cudaDevices()) {
        if (device.ordinal == ordinal) {
            return device;
        }
    }
    return std::nullopt;
}

/// What the driver says about a GPU; a missing one is refused when the run begins.
json deviceJson(const kernels::CudaDeviceInfo& device) {
    const std::string profile = kernels::profileOfDevice(device.name);
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

std::string driverVersion() {
    const std::string text = gpuLibraryVersion("NVML"); // "driver 550.54"
    return text.substr(std::min(text.size(), text.find_last_of(' ') + 1));
}

void addGpu(json& result, const kernels::CudaDeviceInfo& device) {
    result["device"] = deviceJson(device);
    // The versions are those of the machine: looked up once in a process.
    static const std::string driver = driverVersion(), cuda = gpuLibraryVersion("libcuda");
    if (!driver.empty()) {
        result["driver_version"] = driver;
    }
    if (!cuda.empty()) {
        result["cuda_version"] = cuda;
    }
    std::string why;
    if (const auto monitor = profiler::NvmlMonitor::open(device.pciBusId, why)) {
        const profiler::GpuReading reading = monitor->read();
        if (reading.smClockMax) {
            result["sm_clock_max_hz"] = *reading.smClockMax;
        }
        if (reading.powerLimit) {
            result["power_limit_watts"] = *reading.powerLimit;
        }
    }
}

/// As the kernel has it, with blanks between the words and without the key of a server.
std::string commandLine() {
    constexpr std::size_t kMost = 2000;
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::string line;
    bool secret = false;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\0', begin), text.size());
        const std::string word = text.substr(begin, end - begin);
        line += (line.empty() ? "" : " ") + (secret ? "***" : word.starts_with("--api-key=") ? "--api-key=***" : word);
        secret = word == "--api-key";
        begin = end + 1;
    }
    return line.size() > kMost ? line.substr(0, kMost) + "..." : line;
}

/// Empty for a model without files and for one that is not there, which the run refuses.
std::string hashOfModel(const std::string& model) {
    if (model.empty() || model.starts_with("synthetic:")) {
        return {};
    }
    try {
        return modelFingerprint(engine::modelFolder(model));
    } catch (const base::Error&) {
        return {};
    }
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
            {"commit", programCommit()},
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
    result["command_line"] = commandLine();
    std::error_code error; // a folder that was deleted meanwhile has no name
    if (const auto folder = std::filesystem::current_path(error); !error) {
        result["working_directory"] = folder.string();
    }
    if (const std::string hash = hashOfModel(experiment.text("model")); !hash.empty()) {
        result["model_hash"] = hash;
    }
    if (backend == kernels::Backend::Cuda) {
        if (const auto device = cudaDevice(static_cast<int>(experiment.integer("device")))) {
            addGpu(result, *device);
        } else {
            result["device"] = nullptr;
        }
    } else if (experiment.has("device_profile") || (meta && !pricesCpu)) {
        result["device"] = traitsJson(engine::profileTraits(experiment));
    } else {
        result["device"] = traitsJson(kernels::cpuTraits(static_cast<int>(experiment.integer("threads"))));
    }
    return result;
}

void addClockOfWork(const engine::Experiment& experiment, json& metrics) {
    if (engine::backendOf(experiment) != kernels::Backend::Cuda || !metrics.is_object()) {
        return;
    }
    const auto device = cudaDevice(static_cast<int>(experiment.integer("device")));
    std::string why;
    const auto monitor = device ? profiler::NvmlMonitor::open(device->pciBusId, why) : nullptr;
    if (monitor == nullptr) {
        return;
    }
    if (const auto clock = monitor->read().smClock) {
        metrics[engine::result::kSmClockHz.key] = *clock;
    }
}

} // namespace vitrine::app
