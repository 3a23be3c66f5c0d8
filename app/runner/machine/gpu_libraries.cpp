// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/gpu_libraries.h"

#include <array>
#include <fmt/format.h>
#include <functional>
#include <string_view>

#include "base/shared_library.h"

namespace vitrine::app {

namespace {

using Symbol = std::function<void*(const char*)>;

struct Wanted {
    std::string_view name;
    std::vector<std::string> sonames; ///< newest first
    std::string_view neededFor;
    std::string_view install;
    std::function<std::string(const Symbol&)> version;
};

/// 12040 is 12.4: how the driver, CUPTI and others write versions.
std::string thousands(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

template <class Signature> Signature* as(void* symbol) {
    return reinterpret_cast<Signature*>(symbol);
}

std::string intVersion(const Symbol& symbol, const char* function) {
    int version = 0;
    auto* call = as<int(int*)>(symbol(function));
    return call != nullptr && call(&version) == 0 ? thousands(version) : std::string();
}

std::string nvrtcVersion(const Symbol& symbol) {
    int major = 0;
    int minor = 0;
    auto* call = as<int(int*, int*)>(symbol("nvrtcVersion"));
    return call != nullptr && call(&major, &minor) == 0 ? fmt::format("{}.{}", major, minor) : std::string();
}

std::string cublasLtVersion(const Symbol& symbol) {
    auto* call = as<std::size_t()>(symbol("cublasLtGetVersion"));
    if (call == nullptr) {
        return {};
    }
    const std::size_t version = call();
    // 13.0.0 is 130000, as 12.9.1 is 120901.
    return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::string ncclVersion(const Symbol& symbol) {
    int version = 0;
    auto* call = as<int(int*)>(symbol("ncclGetVersion"));
    return call != nullptr && call(&version) == 0
               ? fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100)
               : std::string();
}

std::string nvmlVersion(const Symbol& symbol) {
    auto* start = as<int()>(symbol("nvmlInit_v2"));
    auto* stop = as<int()>(symbol("nvmlShutdown"));
    auto* version = as<int(char*, unsigned)>(symbol("nvmlSystemGetDriverVersion"));
    if (start == nullptr || stop == nullptr || version == nullptr || start() != 0) {
        return {};
    }
    std::array<char, 96> text{};
    const bool known = version(text.data(), static_cast<unsigned>(text.size())) == 0;
    stop();
    return known ? fmt::format("driver {}", text.data()) : std::string();
}

const std::vector<Wanted>& wantedLibraries() {
    static const std::vector<Wanted> kWanted{
        {"libcuda",
         {"libcuda.so.1"},
         "running on an NVIDIA GPU",
         "install the NVIDIA driver",
         [](const Symbol& symbol) { return intVersion(symbol, "cuDriverGetVersion"); }},
        {"NVRTC",
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
         "compiling GPU kernels",
         "install the CUDA toolkit, or: pip install nvidia-cuda-nvrtc",
         nvrtcVersion},
        {"cuBLASLt",
         {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
         "dense products on the GPU",
         "install the CUDA toolkit, or: pip install nvidia-cublas",
         cublasLtVersion},
        {"CUPTI",
         {"libcupti.so.13", "libcupti.so.12", "libcupti.so"},
         "device times of GPU kernels",
         "install the CUDA toolkit, or: pip install nvidia-cuda-cupti",
         [](const Symbol& symbol) {
             std::uint32_t version = 0;
             auto* call = as<int(std::uint32_t*)>(symbol("cuptiGetVersion"));
             return call != nullptr && call(&version) == 0 ? fmt::format("API {}", version) : std::string();
         }},
        {"NCCL",
         {"libnccl.so.2"},
         "several GPUs in one run",
         "apt-get install libnccl2, or: pip install nvidia-nccl-cu12",
         ncclVersion},
        {"NVML",
         {"libnvidia-ml.so.1"},
         "clocks, power and the memory of other programs",
         "install the NVIDIA driver",
         nvmlVersion},
    };
    return kWanted;
}

void askForDevices(const base::SharedLibrary& driver, GpuReport& report) {
    auto* start = as<int(unsigned)>(driver.symbol("cuInit"));
    auto* count = as<int(int*)>(driver.symbol("cuDeviceGetCount"));
    auto* get = as<int(int*, int)>(driver.symbol("cuDeviceGet"));
    auto* name = as<int(char*, int, int)>(driver.symbol("cuDeviceGetName"));
    auto* total = as<int(std::size_t*, int)>(driver.symbol("cuDeviceTotalMem_v2"));
    if (start == nullptr || count == nullptr || get == nullptr || name == nullptr || total == nullptr) {
        report.driverError = "the driver library lacks functions of CUDA";
        return;
    }
    int devices = 0;
    const int code = start(0);
    if (code != 0 || count(&devices) != 0) {
        report.driverError = fmt::format("the driver did not start (CUDA error {})", code);
        return;
    }
    for (int ordinal = 0; ordinal < devices; ++ordinal) {
        int device = 0;
        std::array<char, 256> text{};
        std::size_t bytes = 0;
        if (get(&device, ordinal) == 0 && name(text.data(), static_cast<int>(text.size()), device) == 0 &&
            total(&bytes, device) == 0) {
            report.devices.push_back({text.data(), bytes});
        }
    }
}

} // namespace

GpuReport findGpuLibraries() {
    GpuReport report;
    for (const Wanted& wanted : wantedLibraries()) {
        const base::SharedLibrary library = base::SharedLibrary::find(wanted.sonames);
        GpuLibrary entry;
        entry.name = wanted.name;
        entry.neededFor = wanted.neededFor;
        entry.install = wanted.install;
        entry.found = library.isOpen();
        entry.path = library.path();
        entry.error = library.error();
        if (entry.found) {
            entry.version = wanted.version([&library](const char* name) { return library.symbol(name); });
            if (wanted.name == "libcuda") {
                askForDevices(library, report);
            }
        }
        report.libraries.push_back(std::move(entry));
    }
    return report;
}

std::string gpuLibraryVersion(std::string_view name) {
    for (const Wanted& wanted : wantedLibraries()) {
        if (wanted.name == name) {
            const base::SharedLibrary library = base::SharedLibrary::find(wanted.sonames);
            return library.isOpen() ? wanted.version([&library](const char* symbol) { return library.symbol(symbol); })
                                    : std::string();
        }
    }
    return {};
}

} // namespace vitrine::app
