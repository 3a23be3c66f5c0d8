// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/cuda_device.h"

#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::kernels {

namespace {

constexpr std::size_t kMostForeign = 16; ///< a sentence names no more

} // namespace

CudaDeviceInfo describeDevice(const CudaDriver& driver, int ordinal) {
    CudaDeviceInfo info;
    info.ordinal = ordinal;
    CUdevice device = 0;
    if (driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS) {
        return info;
    }
    std::array<char, 256> text{};
    if (driver.cuDeviceGetName(text.data(), static_cast<int>(text.size()), device) == CUDA_SUCCESS) {
        info.name = text.data();
    }
    if (driver.cuDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), device) == CUDA_SUCCESS) {
        info.pciBusId = text.data();
    }
    std::size_t bytes = 0;
    driver.cuDeviceTotalMem(&bytes, device);
    info.memoryBytes = bytes;
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        driver.cuDeviceGetAttribute(&value, which, device);
        return value;
    };
    info.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    info.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    info.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info.sharedPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info.l2Bytes = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    return info;
}

std::vector<CudaDeviceInfo> cudaDevices() {
    const CudaDriver* driver = CudaDriver::find();
    int count = 0;
    if (driver == nullptr || driver->cuDeviceGetCount(&count) != CUDA_SUCCESS) {
        return {};
    }
    std::vector<CudaDeviceInfo> devices;
    devices.reserve(static_cast<std::size_t>(count));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        devices.push_back(describeDevice(*driver, ordinal));
    }
    return devices;
}

CudaDevice::CudaDevice(const CudaDriver& driver, int ordinal, std::uint64_t failFrom)
    : driver_(driver), failFrom_(failFrom) {
    int count = 0;
    check(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount");
    if (ordinal < 0 || ordinal >= count) {
        throw base::BadInput(fmt::format("device: there is no CUDA device {}; this machine has {}", ordinal, count));
    }
    check(driver_.cuDeviceGet(&device_, ordinal), "cuDeviceGet");
    info_ = describeDevice(driver_, ordinal);
    check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    check(driver_.cuStreamCreate(&compute_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(driver_.cuStreamCreate(&copy_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

CudaDevice::~CudaDevice() {
    // After a fault every call fails; the process is about to end, and nothing of it matters any more.
    driver_.cuCtxSetCurrent(context_);
    driver_.cuStreamDestroy(compute_);
    driver_.cuStreamDestroy(copy_);
    driver_.cuDevicePrimaryCtxRelease(device_);
}

void CudaDevice::check(CUresult code, std::string_view call) {
    if (code == CUDA_SUCCESS) {
        return;
    }
    throwIfFaulted();
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        base::OutOfMemoryDetails details;
        details.what = std::string(call);
        throw base::OutOfMemory(std::move(details));
    }
    if (!CudaDriver::isSticky(code)) {
        throw base::Internal(fmt::format("{}: {}", call, driver_.describe(code)));
    }
    std::string last;
    for (std::size_t back = 0; back < recent_.size() && back < launches_; ++back) {
        last += (last.empty() ? "" : ", ") + recent_[(launches_ - 1 - back) % recent_.size()];
    }
    const std::string foreign =
        foreign_.empty() ? ""
                         : fmt::format("; kernels of named packs among all launched: {}", fmt::join(foreign_, ", "));
    fault_ = fmt::format("device: {}; the last kernels launched, newest first: {}{}; start the program anew",
                         driver_.describe(code), last.empty() ? "none" : last, foreign);
    throwIfFaulted();
}

void CudaDevice::throwIfFaulted() const {
    if (!fault_.empty()) {
        throw base::DeviceFault(fault_);
    }
}

void CudaDevice::launched(std::string_view name, std::string_view pack) {
    recent_[launches_ % recent_.size()].assign(name);
    ++launches_;
    if (!pack.empty() && foreign_.size() < kMostForeign) {
        foreign_.insert(fmt::format("{} of pack {}", name, pack));
    }
}

} // namespace vitrine::kernels
