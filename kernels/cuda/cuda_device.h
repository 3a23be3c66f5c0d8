// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Shared by the files of the CUDA backend: the driver, the device's context and streams, and the fault that occurred,
// if any. Only files that are compiled with CUDA headers may include this one.

#include <array>
#include <cuda.h>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/jit/cuda_driver.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// A retained primary context with its streams. Memory, events and graphs keep it alive by holding it.
class CudaDevice {
public:
    CudaDevice(const CudaDriver& driver, int ordinal, std::uint64_t failFrom = 0);
    ~CudaDevice();
    CudaDevice(const CudaDevice&) = delete; // owns the context
    CudaDevice& operator=(const CudaDevice&) = delete;

    const CudaDriver& driver() const { return driver_; }
    const CudaDeviceInfo& info() const { return info_; }
    CUstream compute() const { return compute_; }
    CUstream copy() const { return copy_; }
    void makeCurrent() const { driver_.cuCtxSetCurrent(context_); }

    /// Throws for every code but success: OutOfMemory, DeviceFault (and from then on always), else Internal.
    void check(CUresult code, std::string_view call);
    /// Makes a call that needs memory. Where CudaOptions::failFrom says so, it acts as if the driver had none.
    template <class Call> CUresult allocating(const Call& call) {
        return failFrom_ != 0 && ++asked_ >= failFrom_ ? CUDA_ERROR_OUT_OF_MEMORY : call();
    }
    void throwIfFaulted() const;
    bool faulted() const { return !fault_.empty(); }
    /// Remembers a launch for the message of a fault. `pack` names the pack of a kernel that does not come with the
    /// program, else it is empty. Such kernels are named first, however much was launched since.
    void launched(std::string_view name, std::string_view pack = {});

private:
    const CudaDriver& driver_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
    CUstream compute_ = nullptr;
    CUstream copy_ = nullptr;
    CudaDeviceInfo info_;
    std::uint64_t failFrom_, asked_ = 0;
    std::string fault_;
    std::array<std::string, 4> recent_; ///< a ring of the last kernels
    std::size_t launches_ = 0;
    std::set<std::string, std::less<>> foreign_; ///< kernels of packs that the user named
};

/// What the driver says of a device.
CudaDeviceInfo describeDevice(const CudaDriver& driver, int ordinal);

std::unique_ptr<MemoryResource> makeDeviceResource(std::shared_ptr<CudaDevice> device);
std::unique_ptr<MemoryResource> makePinnedResource(std::shared_ptr<CudaDevice> device);

} // namespace vitrine::kernels
