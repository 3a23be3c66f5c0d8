// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/gpu/pm_sampling.h"

#include <algorithm>
#include <limits>

namespace vitrine::profiler {

namespace {
constexpr std::int64_t kSameClock = 5'000'000'000;
constexpr double kMostShare = 1.25;
} // namespace

std::string_view counterName(DeviceCounter counter) {
    switch (counter) {
    case DeviceCounter::DramRead:
        return "gpu.dram_read_bytes_per_second";
    case DeviceCounter::DramWrite:
        return "gpu.dram_write_bytes_per_second";
    case DeviceCounter::SmActive:
        return "gpu.sm_active";
    case DeviceCounter::TensorActive:
        return "gpu.tensor_active";
    case DeviceCounter::WarpsActive:
        break;
    }
    return "gpu.warps_active";
}

double soundShare(double share) {
    return share >= 0 && share <= kMostShare ? std::min(share, 1.0) : std::numeric_limits<double>::quiet_NaN();
}

void ClockFit::see(std::uint64_t device, base::TimeNs host) {
    const std::int64_t distance = host - static_cast<std::int64_t>(device);
    if (count_ == 0) {
        // A sample is seen soon after it was over; clocks that are not the same are minutes or years apart.
        same_ = distance > -kSameClock && distance < kSameClock;
    }
    distances_[count_ % kPairs] = distance;
    ++count_;
    smallest_ = *std::min_element(distances_.begin(),
                                  distances_.begin() + static_cast<std::ptrdiff_t>(std::min(count_, kPairs)));
}

base::TimeNs ClockFit::hostTime(std::uint64_t device) const {
    return static_cast<std::int64_t>(device) + (same_ ? 0 : smallest_);
}

} // namespace vitrine::profiler
