// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a CudaContext is made.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vitrine::kernels {

struct CudaOptions {
    int device = 0;
    std::vector<std::string> kernelPacks;
    std::vector<std::pair<std::string, std::string>> kernelOverrides;
    std::string cacheFolder;
    bool dependentLaunch = true; ///< programmatic dependent launch where the device has it
    /// For tests: the driver acts as if memory were exhausted from this request on (memory, pinned memory, programs,
    /// graphs). 1 is the first request; 0: never.
    std::uint64_t failFrom = 0;
};

} // namespace vitrine::kernels
