// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which of NVIDIA's libraries this machine has. Nothing is linked: each is looked for and opened at run time, in the
// order that base/shared_library.h gives.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::app {

struct GpuLibrary {
    std::string name; ///< "NVRTC"
    bool found = false;
    std::string path;      ///< as opened; empty when not found
    std::string version;   ///< as it says itself; empty when it does not
    std::string error;     ///< what the last attempt said, when a file was there but did not open
    std::string neededFor; ///< "compiling kernels"
    std::string install;   ///< what to do to get it
};

struct GpuDevice {
    std::string name;
    std::uint64_t memoryBytes = 0;
};

struct GpuReport {
    std::vector<GpuLibrary> libraries;
    std::vector<GpuDevice> devices;
    std::string driverError; ///< why there are no devices although the driver opened; empty otherwise
};

/// Looks for all of them; opens, asks for the version and closes. Never throws for what is missing.
GpuReport findGpuLibraries();
/// The version of one of them by its name; empty when it is not there or does not say it.
std::string gpuLibraryVersion(std::string_view name);

} // namespace vitrine::app
