// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/environment.h"

#include <array>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/utsname.h>

#include "kernels/device_traits.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Meta without a named device.
constexpr const char* kDefaultProfile = "h100-80gb";

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

std::string_view chosenBackend(const json& experiment) {
    const bool meta = experiment.value("plan", false) || experiment.value("backend", "auto") == "meta";
    return meta ? "meta" : "cpu";
}

json runEnvironment(const json& experiment) {
    json result = machineEnvironment();
    const bool meta = chosenBackend(experiment) == "meta";
    result["backend"] = chosenBackend(experiment);
    result["time_base"] = meta ? "virtual" : "monotonic";
    const std::string profile = experiment.value("device_profile", "");
    const bool pricesCpu = meta && experiment.value("backend", "auto") == "cpu";
    if (!profile.empty() || (meta && !pricesCpu)) {
        result["device"] = traitsJson(kernels::loadDeviceProfile(profile.empty() ? kDefaultProfile : profile));
    } else {
        result["device"] = traitsJson(kernels::cpuTraits(experiment.value("threads", 0)));
    }
    return result;
}

} // namespace vitrine::app
