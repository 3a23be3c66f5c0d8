// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Hardware counters over time: rates of device memory, how busy multiprocessors and tensor cores are. The device
// samples itself at a fixed interval, without slowing or serialising what runs. No vendor's headers here.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace vitrine::profiler {

enum class DeviceCounter : std::uint8_t { DramRead, DramWrite, SmActive, TensorActive, WarpsActive };
inline constexpr int kDeviceCounters = 5;
/// The counter's name in a run: "gpu.dram_read_bytes_per_second", "gpu.sm_active", ...
std::string_view counterName(DeviceCounter counter);

/// A share as it is reported: 0 to 1. The counters of one sample are not latched at one instant, so that a busy unit
/// may be a little above 1 (1.18 was seen). What is far above means nothing, and is NaN: the first sample after the
/// start counts warps from long before it (5 to 27 were seen).
double soundShare(double share);

struct CounterSampleRow {
    base::TimeNs begin = 0, end = 0; ///< monotonicNs() of the process
    /// Bytes a second, or shares from 0 to 1. NaN: this device has no such counter, or this sample no sound value.
    std::array<double, kDeviceCounters> values{};
};

class CounterSampler {
public:
    virtual ~CounterSampler() = default;
    /// Hands over what was sampled since the last call. One thread at a time, several times a second.
    virtual void collect(const std::function<void(const CounterSampleRow&)>& take) = 0;
    /// Samples that the device dropped because they were not collected in time.
    virtual std::uint64_t lost() const = 0;
};

/// Starts sampling the CUDA device `ordinal` every `interval`, which is held to 50 us to 1 s. The device's context must
/// exist. Null with one sentence in `why` when that cannot be done.
std::unique_ptr<CounterSampler> openCounterSampler(int ordinal, base::TimeNs interval, std::string& why);

/// Relates the time stamps of samples to this process's clock. While CUPTI knows that clock (openCupti gives it) the
/// stamps are on it. Otherwise only pairs are known that are in order: a sample was over (stamp) before it was seen
/// (host time). The smallest distance of the last pairs is then the closest to the truth.
class ClockFit {
public:
    void see(std::uint64_t device, base::TimeNs host);
    base::TimeNs hostTime(std::uint64_t device) const;

private:
    static constexpr std::size_t kPairs = 256; ///< old ones are forgotten, so that drift is followed
    std::array<std::int64_t, kPairs> distances_{};
    std::size_t count_ = 0;
    std::int64_t smallest_ = 0;
    bool same_ = false; ///< the first stamp was on the host's clock already
};

} // namespace vitrine::profiler
