// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the driver says of a GPU at this moment: memory, power, clocks, load. Needs no CUDA context, so a status line
// may poll it whether or not a run is going on. A reading takes well under a millisecond on most machines, but is a
// call of the driver: not for the GUI's thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vitrine::profiler {

/// Empty: this device or driver does not say.
struct GpuReading {
    std::optional<std::uint64_t> memoryUsed;    ///< bytes, by everyone
    std::optional<std::uint64_t> memoryTotal;   ///< bytes
    std::optional<std::uint64_t> memoryProcess; ///< bytes, by the processes asked for, where the driver knows them
    std::optional<double> power;                ///< watts
    std::optional<double> powerLimit;           ///< watts
    std::optional<double> energy;               ///< joules since the driver was loaded: differences are exact
    std::optional<double> smClock;              ///< hertz
    std::optional<double> smClockMax;           ///< hertz, the highest that the device runs at
    std::optional<double> memoryClock;          ///< hertz
    std::optional<double> temperature;          ///< degrees Celsius
    std::optional<double> busy;                 ///< share of the last moment in which something ran, 0 to 1
    std::optional<double> memoryBusy;           ///< share in which memory was accessed, 0 to 1
    std::optional<std::uint64_t> clockReasons;  ///< why clocks are not higher: bits, see clockReasonTexts
};

/// "power limit", "too hot", ...; empty when nothing holds the clocks back.
std::vector<std::string> clockReasonTexts(std::uint64_t reasons);

class NvmlMonitor {
public:
    /// By PCI bus id as CUDA gives it ("0000:3b:00.0": NVML counts devices in another order), or by NVML's number when
    /// the id is empty. Null with one sentence in `why` when there is none.
    static std::unique_ptr<NvmlMonitor> open(const std::string& pciBusId, std::string& why);
    ~NvmlMonitor();

    /// From any thread. Memory is asked for this process.
    GpuReading read() const;
    /// The same with memory by all of `processes` together.
    GpuReading read(std::span<const int> processes) const;

private:
    struct State;
    explicit NvmlMonitor(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace vitrine::profiler
