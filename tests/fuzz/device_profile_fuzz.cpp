// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Any file is a device profile or BadInput that names the file.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "kernels/core/device_traits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace vitrine;
    static const int kFile = ::memfd_create("profile", MFD_CLOEXEC);
    if (kFile < 0 || ::ftruncate(kFile, 0) != 0 || ::pwrite(kFile, data, size, 0) != static_cast<ssize_t>(size)) {
        std::abort();
    }
    const std::string path = fmt::format("/proc/self/fd/{}", kFile);
    try {
        const kernels::DeviceTraits traits = kernels::loadDeviceProfile(path);
        if (!std::isfinite(traits.memoryBandwidth) || traits.memoryBandwidth <= 0 || traits.multiprocessors < 0) {
            std::abort();
        }
    } catch (const base::BadInput& error) {
        if (error.message().rfind(path, 0) != 0) {
            std::abort();
        }
    }
    return 0;
}
