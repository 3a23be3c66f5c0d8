// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>

#include "base/error.h"
#include "kernels/cuda_device.h"

namespace vitrine::kernels {

namespace {

[[noreturn]] void throwExhausted(std::uint64_t bytes, std::uint64_t largestFree, const Tag& tag) {
    base::OutOfMemoryFacts facts;
    facts.what = std::string(tag.name);
    facts.requested = bytes;
    facts.largestFree = largestFree;
    throw base::OutOfMemory(std::move(facts));
}

/// Device memory straight from the driver: pools and arenas above make such calls rare. cuMemFree waits for the device, so
/// freed memory is never in use by work that is still under way.
class DeviceResource final : public MemoryResource {
public:
    explicit DeviceResource(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        device_->throwIfFaulted();
        CUdeviceptr address = 0;
        const CUresult code = device_->allocating(
            [&] { return device_->driver().cuMemAlloc(&address, std::max<std::uint64_t>(bytes, 1)); });
        if (code == CUDA_ERROR_OUT_OF_MEMORY) {
            throwExhausted(bytes, largestFree(), tag);
        }
        device_->check(code, "cuMemAlloc");
        return reinterpret_cast<void*>(address); // NOLINT(performance-no-int-to-ptr)
    }
    void deallocate(void* address, std::uint64_t, StreamRef) noexcept override {
        // Of a faulted context nothing can be freed; the process ends soon.
        device_->driver().cuMemFree(reinterpret_cast<CUdeviceptr>(address));
    }
    base::MemorySpace space() const override { return base::MemorySpace::Device; }
    std::uint64_t largestFree() const override {
        std::size_t available = 0;
        std::size_t total = 0;
        device_->driver().cuMemGetInfo(&available, &total);
        return available;
    }

private:
    std::shared_ptr<CudaDevice> device_;
};

/// Page-locked host memory: copies from and to it overlap with kernels.
class PinnedResource final : public MemoryResource {
public:
    explicit PinnedResource(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        device_->throwIfFaulted();
        void* address = nullptr;
        const CUresult code = device_->allocating([&] {
            return device_->driver().cuMemHostAlloc(&address, std::max<std::uint64_t>(bytes, 1),
                                                    CU_MEMHOSTALLOC_PORTABLE);
        });
        if (code == CUDA_ERROR_OUT_OF_MEMORY) {
            throwExhausted(bytes, 0, tag);
        }
        device_->check(code, "cuMemHostAlloc");
        return address;
    }
    void deallocate(void* address, std::uint64_t, StreamRef) noexcept override {
        device_->driver().cuMemFreeHost(address);
    }
    base::MemorySpace space() const override { return base::MemorySpace::Host; }
    std::uint64_t largestFree() const override { return std::uint64_t{1} << 46; }

private:
    std::shared_ptr<CudaDevice> device_;
};

} // namespace

std::unique_ptr<MemoryResource> makeDeviceResource(std::shared_ptr<CudaDevice> device) {
    return std::make_unique<DeviceResource>(std::move(device));
}

std::unique_ptr<MemoryResource> makePinnedResource(std::shared_ptr<CudaDevice> device) {
    return std::make_unique<PinnedResource>(std::move(device));
}

} // namespace vitrine::kernels
