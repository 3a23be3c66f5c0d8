// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/gpu_counters.h"

#include <algorithm>

namespace vitrine::profiler {

namespace {

constexpr std::int64_t kSmallChange = std::int64_t{8} << 20;

std::optional<double> asDouble(const std::optional<std::uint64_t>& value) {
    return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

} // namespace

void GpuCounters::put(const char* name, std::optional<double> value, base::TimeNs time) {
    if (!value) {
        return;
    }
    const auto known = std::ranges::find(last_, name, &std::pair<const char*, double>::first);
    if (known == last_.end()) {
        last_.emplace_back(name, *value);
    } else if (known->second == *value) {
        return; // it holds from its last record on
    } else {
        known->second = *value;
    }
    sink_.record(base::CounterEvent{time, sink_.intern(name), *value});
}

void GpuCounters::write(const GpuReading& reading, base::TimeNs time) {
    put("gpu.memory_used_bytes", asDouble(reading.memoryUsed), time);
    put("gpu.memory_process_bytes", asDouble(reading.memoryProcess), time);
    put("gpu.power_w", reading.power, time);
    put("gpu.energy_j", reading.energy, time);
    put("gpu.sm_clock_hz", reading.smClock, time);
    put("gpu.memory_clock_hz", reading.memoryClock, time);
    put("gpu.temperature_c", reading.temperature, time);
    put("gpu.busy", reading.busy, time);
    put("gpu.memory_busy", reading.memoryBusy, time);
    put("gpu.clock_reasons", asDouble(reading.clockReasons), time);
}

void UntrackedMemory::see(std::uint64_t used, std::uint64_t reserved, base::TimeNs time) {
    const std::int64_t untracked = static_cast<std::int64_t>(used) - static_cast<std::int64_t>(reserved);
    if (!base_) {
        base_ = untracked;
    }
    const std::int64_t growth = std::max<std::int64_t>(0, untracked - *base_);
    const bool quiet = reserved == lastReserved_ && candidate_ == growth;
    lastReserved_ = reserved;
    candidate_ = growth;
    const std::int64_t change = growth - static_cast<std::int64_t>(reported_);
    if (quiet && (change >= kSmallChange || change <= -kSmallChange)) {
        report(growth, time);
    }
}

void UntrackedMemory::report(std::int64_t growth, base::TimeNs time) {
    const auto target = static_cast<std::uint64_t>(growth);
    while (reported_ > target) {
        reported_ -= blocks_.back().bytes;
        sink_.record(base::FreeEvent{time, blocks_.back().id});
        blocks_.pop_back();
    }
    if (reported_ < target) {
        base::AllocationEvent event;
        event.time = time;
        event.id = nextId_++;
        event.bytes = target - reported_;
        event.name = sink_.intern("libraries, code and buffers of the driver");
        event.category = base::MemoryCategory::Untracked;
        event.space = base::MemorySpace::Device;
        sink_.record(event);
        blocks_.push_back({event.id, event.bytes});
        reported_ = target;
    }
}

} // namespace vitrine::profiler
