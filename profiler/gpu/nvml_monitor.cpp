// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/nvml_monitor.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <unistd.h>

#include "profiler/gpu/nvml_api.h"

namespace vitrine::profiler {

namespace {

constexpr std::uint64_t kUnknownBytes = std::numeric_limits<std::uint64_t>::max();

struct Reason {
    std::uint64_t bit;
    const char* text;
};
// Bits as NVML documents them; "GPU idle" is no reason to show.
constexpr std::array<Reason, 8> kReasons{{{0x2, "clocks set by an application"},
                                          {0x4, "power limit"},
                                          {0x8, "hardware slow-down"},
                                          {0x10, "clocks of a group of GPUs"},
                                          {0x20, "too hot"},
                                          {0x40, "much too hot"},
                                          {0x80, "external power brake"},
                                          {0x100, "display clocks"}}};

/// The value when the call exists and works.
template <class Value, class Function, class... Arguments>
std::optional<Value> ask(Function function, NvmlDevice device, Arguments... arguments) {
    Value value{};
    if (function == nullptr || function(device, arguments..., &value) != kNvmlSuccess) {
        return std::nullopt;
    }
    return value;
}

template <class Value> std::optional<double> scaled(const std::optional<Value>& value, double factor) {
    return value ? std::optional<double>(static_cast<double>(*value) * factor) : std::nullopt;
}

} // namespace

std::vector<std::string> clockReasonTexts(std::uint64_t reasons) {
    std::vector<std::string> texts;
    for (const Reason& reason : kReasons) {
        if ((reasons & reason.bit) != 0) {
            texts.emplace_back(reason.text);
        }
    }
    return texts;
}

struct NvmlMonitor::State {
    const NvmlApi* api = nullptr;
    NvmlDevice device = nullptr;

    void readMemory(GpuReading& reading) const;
    std::optional<std::uint64_t> processBytes(std::span<const int> wanted) const;
};

void NvmlMonitor::State::readMemory(GpuReading& reading) const {
    if (api->memoryInfoV2 != nullptr) {
        NvmlMemoryV2 memory{};
        memory.version = kNvmlMemoryV2;
        if (api->memoryInfoV2(device, &memory) == kNvmlSuccess) {
            // What the driver keeps for itself is not to be had, like what others use.
            reading.memoryUsed = memory.used + memory.reserved;
            reading.memoryTotal = memory.total;
            return;
        }
    }
    if (const auto memory = ask<NvmlMemory>(api->memoryInfo, device)) {
        reading.memoryUsed = memory->used;
        reading.memoryTotal = memory->total;
    }
}

std::optional<std::uint64_t> NvmlMonitor::State::processBytes(std::span<const int> wanted) const {
    if (api->computeProcesses == nullptr) {
        return std::nullopt;
    }
    std::vector<NvmlProcess> processes(16);
    auto count = static_cast<unsigned>(processes.size());
    NvmlReturn code = api->computeProcesses(device, &count, processes.data());
    if (code == kNvmlTooSmall) {
        processes.resize(count + 16);
        count = static_cast<unsigned>(processes.size());
        code = api->computeProcesses(device, &count, processes.data());
    }
    if (code != kNvmlSuccess) {
        return std::nullopt;
    }
    // In a container the driver may number processes in another way than these are numbered: then none is found.
    processes.resize(std::min<std::size_t>(count, processes.size()));
    std::optional<std::uint64_t> sum;
    for (const NvmlProcess& process : processes) {
        const bool mine = std::find(wanted.begin(), wanted.end(), static_cast<int>(process.pid)) != wanted.end();
        if (mine && process.usedBytes != kUnknownBytes) {
            sum = sum.value_or(0) + process.usedBytes;
        }
    }
    return sum;
}

NvmlMonitor::NvmlMonitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
NvmlMonitor::~NvmlMonitor() = default;

std::unique_ptr<NvmlMonitor> NvmlMonitor::open(const std::string& pciBusId, std::string& why) {
    auto state = std::make_unique<State>();
    state->api = NvmlApi::find();
    if (state->api == nullptr) {
        why = NvmlApi::whyMissing();
        return nullptr;
    }
    const NvmlReturn code = pciBusId.empty() ? state->api->handleByIndex(0, &state->device)
                                             : state->api->handleByPciBusId(pciBusId.c_str(), &state->device);
    if (code != kNvmlSuccess) {
        why = fmt::format("NVML does not know the device {}: {}", pciBusId, state->api->errorString(code));
        return nullptr;
    }
    return std::unique_ptr<NvmlMonitor>(new NvmlMonitor(std::move(state)));
}

GpuReading NvmlMonitor::read() const {
    const int own = ::getpid();
    return read(std::span(&own, 1));
}

GpuReading NvmlMonitor::read(std::span<const int> processes) const {
    const NvmlApi& api = *state_->api;
    const NvmlDevice device = state_->device;
    GpuReading reading;
    state_->readMemory(reading);
    reading.memoryProcess = state_->processBytes(processes);
    reading.power = scaled(ask<unsigned>(api.powerMilliwatts, device), 1e-3);
    reading.powerLimit = scaled(ask<unsigned>(api.powerLimitMilliwatts, device), 1e-3);
    reading.energy = scaled(ask<unsigned long long>(api.energyMillijoules, device), 1e-3);
    reading.smClock = scaled(ask<unsigned>(api.clockMegahertz, device, static_cast<int>(NvmlClock::Sm)), 1e6);
    reading.smClockMax = scaled(ask<unsigned>(api.clockMaxMegahertz, device, static_cast<int>(NvmlClock::Sm)), 1e6);
    reading.memoryClock = scaled(ask<unsigned>(api.clockMegahertz, device, static_cast<int>(NvmlClock::Memory)), 1e6);
    reading.temperature = scaled(ask<unsigned>(api.temperature, device, 0), 1);
    if (const auto load = ask<NvmlUtilization>(api.utilization, device)) {
        reading.busy = load->gpu * 1e-2;
        reading.memoryBusy = load->memory * 1e-2;
    }
    if (const auto reasons = ask<unsigned long long>(api.clockReasons, device)) {
        reading.clockReasons = *reasons;
    }
    return reading;
}

} // namespace vitrine::profiler
