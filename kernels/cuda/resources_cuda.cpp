// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/memory/growing.h"

namespace vitrine::kernels {

namespace {

[[noreturn]] void throwExhausted(std::uint64_t bytes, std::uint64_t largestFree, const Tag& tag) {
    base::OutOfMemoryDetails details;
    details.what = std::string(tag.name);
    details.requested = bytes;
    details.largestFree = largestFree;
    throw base::OutOfMemory(std::move(details));
}

/// Device memory straight from the driver: pools and arenas above make such calls rare. cuMemFree waits for the device,
/// so freed memory is never in use by work that is still under way.
class DeviceResource final : public MemoryResource, public AddressSpace {
public:
    explicit DeviceResource(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {
        place_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        place_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        place_.location.id = device_->info().ordinal;
    }

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
        // Nothing of a faulted context can be freed; the process ends soon.
        device_->driver().cuMemFree(reinterpret_cast<CUdeviceptr>(address));
    }
    base::MemorySpace space() const override { return base::MemorySpace::Device; }
    std::uint64_t largestFree() const override {
        std::size_t available = 0;
        std::size_t total = 0;
        device_->driver().cuMemGetInfo(&available, &total);
        return available;
    }
    AddressSpace* addressSpace() override { return this; }

    std::byte* reserve(std::uint64_t bytes) override {
        device_->throwIfFaulted();
        checkUnit(bytes);
        CUdeviceptr address = 0;
        const CUresult code =
            device_->allocating([&] { return device_->driver().cuMemAddressReserve(&address, bytes, 0, 0, 0); });
        if (code == CUDA_ERROR_OUT_OF_MEMORY) {
            return nullptr;
        }
        device_->check(code, "cuMemAddressReserve");
        return reinterpret_cast<std::byte*>(address); // NOLINT(performance-no-int-to-ptr)
    }
    bool map(std::byte* address, std::uint64_t bytes) override {
        device_->throwIfFaulted();
        const CudaDriver& driver = device_->driver();
        CUmemGenericAllocationHandle memory = 0;
        CUresult code = device_->allocating([&] { return driver.cuMemCreate(&memory, bytes, &place_, 0); });
        if (code == CUDA_ERROR_OUT_OF_MEMORY) {
            return false;
        }
        device_->check(code, "cuMemCreate");
        const auto place = reinterpret_cast<CUdeviceptr>(address);
        code = driver.cuMemMap(place, bytes, 0, memory, 0);
        driver.cuMemRelease(memory); // from here on the mapping alone holds it
        if (code == CUDA_SUCCESS) {
            CUmemAccessDesc access{};
            access.location = place_.location;
            access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
            code = driver.cuMemSetAccess(place, bytes, &access, 1);
            if (code != CUDA_SUCCESS) {
                driver.cuMemUnmap(place, bytes);
            }
        }
        if (code == CUDA_ERROR_OUT_OF_MEMORY) {
            return false; // page tables need memory too
        }
        device_->check(code, "cuMemMap");
        return true;
    }
    void unmap(std::byte* address, std::uint64_t bytes) noexcept override {
        // Nothing of a faulted context can be waited for or freed; the process ends soon.
        device_->driver().cuCtxSynchronize();
        device_->driver().cuMemUnmap(reinterpret_cast<CUdeviceptr>(address), bytes);
    }
    void release(std::byte* address, std::uint64_t bytes) noexcept override {
        device_->driver().cuMemAddressFree(reinterpret_cast<CUdeviceptr>(address), bytes);
    }

private:
    /// Ranges are backed in MemoryOptions::mapUnit; so far every GPU's own unit divides it.
    void checkUnit(std::uint64_t bytes) const {
        std::size_t unit = 0;
        const CUresult code =
            device_->driver().cuMemGetAllocationGranularity(&unit, &place_, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        if (code == CUDA_ERROR_NOT_SUPPORTED || code == CUDA_ERROR_INVALID_DEVICE) {
            throw base::Unsupported(
                "the KV cache: this GPU or its driver cannot map memory into reserved addresses; use "
                "a newer driver or another GPU");
        }
        device_->check(code, "cuMemGetAllocationGranularity");
        if (unit == 0 || bytes % unit != 0) {
            throw base::Unsupported("the KV cache: this GPU maps memory in pieces of " + std::to_string(unit) +
                                    " bytes, larger than the program takes; use another GPU");
        }
    }

    std::shared_ptr<CudaDevice> device_;
    CUmemAllocationProp place_{};
};

/// Large pages of this process, all touched. Pinning such pages takes a tenth of the time that the driver needs for
/// memory of its own, which it touches with one thread in small pages.
class HostPages {
public:
    explicit HostPages(std::uint64_t bytes) : mapped_(bytes + kLargePage) {
        void* const mapping = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping == MAP_FAILED) {
            return;
        }
        mapping_ = static_cast<std::byte*>(mapping);
        const auto place = reinterpret_cast<std::uintptr_t>(mapping_);
        address_ = mapping_ + ((place + kLargePage - 1) / kLargePage * kLargePage - place);
        ::madvise(address_, bytes, MADV_HUGEPAGE); // a wish: small pages serve as well
        touch(bytes);
    }
    ~HostPages() {
        if (mapping_ != nullptr) {
            ::munmap(mapping_, mapped_);
        }
    }
    HostPages(HostPages&& other) noexcept
        : mapped_(other.mapped_), mapping_(std::exchange(other.mapping_, nullptr)), address_(other.address_) {}
    HostPages(const HostPages&) = delete; // owns a mapping
    HostPages& operator=(const HostPages&) = delete;
    HostPages& operator=(HostPages&&) = delete;

    void* address() const { return address_; } ///< null: there is no memory

private:
    static constexpr std::uint64_t kLargePage = std::uint64_t{2} << 20;
    static constexpr std::uint64_t kSmallPage = 4096;

    void touch(std::uint64_t bytes) const {
        constexpr unsigned kMostThreads = 16;
        const std::uint64_t pieces = (bytes + kLargePage - 1) / kLargePage;
        const std::uint64_t threads =
            std::min<std::uint64_t>(pieces, std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads));
        const auto work = [&](std::uint64_t number) {
            for (std::uint64_t piece = number; piece < pieces; piece += threads) {
                for (std::uint64_t at = piece * kLargePage; at < std::min((piece + 1) * kLargePage, bytes);
                     at += kSmallPage) {
                    address_[at] = std::byte{0};
                }
            }
        };
        std::vector<std::thread> helpers;
        try {
            for (std::uint64_t number = 1; number < threads; ++number) {
                helpers.emplace_back(work, number);
            }
        } catch (const std::system_error&) {
            // Without threads pages come when the driver asks for them.
        }
        work(0);
        for (std::thread& helper : helpers) {
            helper.join();
        }
    }

    std::uint64_t mapped_;
    std::byte* mapping_ = nullptr;
    std::byte* address_ = nullptr;
};

/// Page-locked host memory: copies from and to it overlap with kernels.
class PinnedResource final : public MemoryResource {
public:
    explicit PinnedResource(std::shared_ptr<CudaDevice> device) : device_(std::move(device)) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        device_->throwIfFaulted();
        if (bytes >= kLarge) {
            if (void* const large = allocateLarge(bytes)) {
                return large;
            }
        }
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
        const auto large = large_.find(address);
        if (large == large_.end()) {
            device_->driver().cuMemFreeHost(address);
            return;
        }
        device_->driver().cuMemHostUnregister(address);
        large_.erase(large);
    }
    base::MemorySpace space() const override { return base::MemorySpace::Host; }
    std::uint64_t largestFree() const override { return std::uint64_t{1} << 46; }

private:
    static constexpr std::uint64_t kLarge = std::uint64_t{8} << 20;

    /// Null where the system or the driver does not want to; the driver's own memory is asked for then.
    void* allocateLarge(std::uint64_t bytes) {
        HostPages pages(bytes);
        void* const address = pages.address();
        if (address == nullptr || device_->allocating([&] {
                return device_->driver().cuMemHostRegister(address, bytes, CU_MEMHOSTREGISTER_PORTABLE);
            }) != CUDA_SUCCESS) {
            return nullptr;
        }
        large_.emplace(address, std::move(pages));
        return address;
    }

    std::map<void*, HostPages> large_;
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
