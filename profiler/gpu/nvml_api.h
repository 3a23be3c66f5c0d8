// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// NVML, opened at run time. Its header is not part of the toolkit everywhere: the few functions used are declared here
// as NVIDIA documents them.

#include <cstdint>
#include <string>

namespace vitrine::profiler {

struct NvmlDevice_st;
using NvmlDevice = NvmlDevice_st*;
using NvmlReturn = int; ///< 0: success, 3: not supported, 4: no permission

inline constexpr NvmlReturn kNvmlSuccess = 0;
inline constexpr NvmlReturn kNvmlTooSmall = 7;

struct NvmlMemory {
    std::uint64_t total, free, used;
};
struct NvmlMemoryV2 {
    unsigned version; ///< kNvmlMemoryV2
    std::uint64_t total, reserved, free, used;
};
inline constexpr unsigned kNvmlMemoryV2 = static_cast<unsigned>(sizeof(NvmlMemoryV2)) | 2U << 24;
struct NvmlUtilization {
    unsigned gpu, memory; ///< percent of the last sampling period in which something ran, or memory was accessed
};
struct NvmlProcess {
    unsigned pid;
    std::uint64_t usedBytes; ///< all ones: not known
    unsigned gpuInstance, computeInstance;
};

enum class NvmlClock : int { Graphics = 0, Sm = 1, Memory = 2 };

struct NvmlApi {
    NvmlReturn (*init)() = nullptr;
    const char* (*errorString)(NvmlReturn) = nullptr;
    NvmlReturn (*handleByPciBusId)(const char*, NvmlDevice*) = nullptr;
    NvmlReturn (*handleByIndex)(unsigned, NvmlDevice*) = nullptr;
    // What a device or driver lacks is null or answers "not supported".
    NvmlReturn (*memoryInfo)(NvmlDevice, NvmlMemory*) = nullptr;
    NvmlReturn (*memoryInfoV2)(NvmlDevice, NvmlMemoryV2*) = nullptr;
    NvmlReturn (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
    NvmlReturn (*powerMilliwatts)(NvmlDevice, unsigned*) = nullptr;
    NvmlReturn (*powerLimitMilliwatts)(NvmlDevice, unsigned*) = nullptr;
    NvmlReturn (*energyMillijoules)(NvmlDevice, unsigned long long*) = nullptr;
    NvmlReturn (*clockMegahertz)(NvmlDevice, int, unsigned*) = nullptr;
    NvmlReturn (*clockMaxMegahertz)(NvmlDevice, int, unsigned*) = nullptr;
    NvmlReturn (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
    NvmlReturn (*clockReasons)(NvmlDevice, unsigned long long*) = nullptr;
    NvmlReturn (*computeProcesses)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;

    /// Started; null when there is none. Thread-safe.
    static const NvmlApi* find();
    /// One sentence: why find() is null.
    static const std::string& whyMissing();
};

} // namespace vitrine::profiler
