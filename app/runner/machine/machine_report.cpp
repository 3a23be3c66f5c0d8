// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/machine_report.h"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "app/runner/machine/environment.h"
#include "app/runner/machine/gpu_libraries.h"
#include "base/error.h"
#include "base/units.h"
#include "engine/checkpoint/checkpoint.h"
#include "kernels/core/device_traits.h"
#include "kernels/cuda/cuda_context.h"
#include "profiler/gpu/readiness.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

constexpr std::uint64_t kLittleMemory = std::uint64_t{4} << 30;

std::uint64_t availableMemory() {
    std::ifstream file("/proc/meminfo");
    std::string key;
    std::string unit;
    std::uint64_t kibibytes = 0;
    while (file >> key >> kibibytes) {
        if (key == "MemAvailable:") {
            return kibibytes << 10;
        }
        std::getline(file, unit);
    }
    return 0;
}

json libraryJson(const GpuLibrary& library) {
    json row = {{"name", library.name},
                {"found", library.found},
                {"path", library.path},
                {"version", library.version},
                {"error", library.error},
                {"needed_for", library.neededFor},
                {"install", library.found ? "" : library.install}};
    return row;
}

/// A missing resource folder is worth a warning, not the end of the report.
template <class Names> json namesOrWarning(Names names, json& warnings) {
    try {
        return names();
    } catch (const base::Error& error) {
        warnings.push_back(error.message());
        return json::array();
    }
}

} // namespace

json machineReport() {
    const GpuReport gpu = findGpuLibraries();
    json warnings = json::array();
    json machine = machineEnvironment();
    const std::uint64_t available = availableMemory();
    machine["available_bytes"] = available;
    if (available < kLittleMemory) {
        warnings.push_back(fmt::format("only {} of host memory are free: large models will not load on the CPU",
                                       base::formatBytes(available)));
    }
    if (machine["simd"] == "cpu-scalar") {
        warnings.push_back("this CPU has neither AVX2 nor AVX-512: products run in plain code, slowly");
    }
    json libraries = json::array();
    for (const GpuLibrary& library : gpu.libraries) {
        libraries.push_back(libraryJson(library));
        if (!library.error.empty()) {
            warnings.push_back(fmt::format("{} is there but does not open: {}", library.name, library.error));
        }
    }
    if (!gpu.driverError.empty()) {
        warnings.push_back(gpu.driverError);
    }
    json gpus = json::array();
    for (const GpuDevice& device : gpu.devices) {
        gpus.push_back({{"name", device.name}, {"memory_bytes", device.memoryBytes}});
    }
    const kernels::DeviceTraits cpu = kernels::cpuTraits(0);
    const std::string cudaReason = kernels::whyNoCuda();
    json report = {
        {"version", programVersion()},
        {"machine", machine},
        {"backends", json::array({{{"name", "cpu"}, {"available", true}, {"reason", ""}},
                                  {{"name", "meta"}, {"available", true}, {"reason", ""}},
                                  {{"name", "cuda"}, {"available", cudaReason.empty()}, {"reason", cudaReason}}})},
        {"device",
         {{"id", cpu.id},
          {"name", cpu.name},
          {"arch", cpu.arch},
          {"memory_bytes", cpu.memoryBytes},
          {"threads", cpu.multiprocessors}}},
        {"gpus", gpus},
        {"libraries", libraries},
        {"profiling", json::array()}};
    report["profiles"] = namesOrWarning([] { return kernels::deviceProfileNames(); }, warnings);
    report["synthetic"] = namesOrWarning([] { return engine::syntheticNames(); }, warnings);
    if (!gpu.devices.empty()) {
        for (const profiler::GpuReadiness& row : profiler::gpuReadiness()) {
            report["profiling"].push_back({{"name", row.name}, {"ready", row.ready}, {"reason", row.reason}});
            if (!row.ready) {
                warnings.push_back(fmt::format("no {}: {}", row.name, row.reason));
            }
        }
    }
    report["warnings"] = warnings;
    return report;
}

std::string missingText(const json& library) {
    return fmt::format("not found; off: {}; to have it: {}", library.value("needed_for", ""),
                       library.value("install", ""));
}

std::vector<std::string> whatIsOff(const json& report) {
    std::vector<std::string> sentences;
    for (const json& backend : report["backends"]) {
        if (!backend.value("available", false)) {
            sentences.push_back(fmt::format("{} off: {}", backend.value("name", ""), backend.value("reason", "")));
        }
    }
    for (const json& library : report["libraries"]) {
        if (!library.value("found", false)) {
            sentences.push_back(fmt::format("{} {}", library.value("name", ""), missingText(library)));
        }
    }
    for (const json& part : report["profiling"]) {
        if (!part.value("ready", false)) {
            sentences.push_back(fmt::format("{}: off: {}", part.value("name", ""), part.value("reason", "")));
        }
    }
    return sentences;
}

} // namespace vitrine::app
