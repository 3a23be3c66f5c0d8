// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/cuda_driver.h"

#include <fmt/format.h>
#include <vector>

#include "base/shared_library.h"

namespace vitrine::kernels {

namespace {

constexpr int kOldestDriver = 12000;

struct LoadedDriver {
    CudaDriver driver;
    std::string missing;
};

#define VITRINE_TEXT_OF(name) #name
#define VITRINE_TEXT(name) VITRINE_TEXT_OF(name)

LoadedDriver loadDriver() {
    LoadedDriver out;
    const std::vector<std::string> names{"libcuda.so.1"};
    const base::SharedLibrary library = base::SharedLibrary::find(names);
    if (!library.isOpen()) {
        out.missing = "the NVIDIA driver (libcuda.so.1) was not found; install it";
        return out;
    }
    CudaDriver& driver = out.driver;
    driver.path = library.path();
#define VITRINE_LOAD(name)                                                                                             \
    driver.name = reinterpret_cast<decltype(&::name)>(library.symbol(VITRINE_TEXT(name)));                             \
    if (driver.name == nullptr) {                                                                                      \
        out.missing =                                                                                                  \
            fmt::format("{}: lacks {}; install a driver of CUDA 12 or later", driver.path, VITRINE_TEXT(name));        \
        return out;                                                                                                    \
    }
    VITRINE_CUDA_FUNCTIONS(VITRINE_LOAD)
#undef VITRINE_LOAD
    const CUresult started = driver.cuInit(0);
    if (started != CUDA_SUCCESS) {
        out.missing = fmt::format("the NVIDIA driver did not start: {}", driver.describe(started));
        return out;
    }
    driver.cuDriverGetVersion(&driver.version);
    if (driver.version < kOldestDriver) {
        out.missing = fmt::format("the NVIDIA driver is for CUDA {}.{}; install one for CUDA 12 or later",
                                  driver.version / 1000, driver.version % 1000 / 10);
    }
    return out;
}

const LoadedDriver& loadedDriver() {
    static const LoadedDriver kLoaded = loadDriver();
    return kLoaded;
}

} // namespace

const CudaDriver* CudaDriver::find() {
    return loadedDriver().missing.empty() ? &loadedDriver().driver : nullptr;
}

const std::string& CudaDriver::whyMissing() {
    return loadedDriver().missing;
}

std::string CudaDriver::describe(CUresult code) const {
    const char* name = nullptr;
    const char* text = nullptr;
    if (cuGetErrorName(code, &name) != CUDA_SUCCESS || cuGetErrorString(code, &text) != CUDA_SUCCESS) {
        return fmt::format("CUDA error {}", static_cast<int>(code));
    }
    return fmt::format("{} ({})", text, name);
}

bool CudaDriver::isSticky(CUresult code) {
    switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_UNKNOWN:
        return true;
    default:
        return false;
    }
}

} // namespace vitrine::kernels
