// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/physical.h"

#include <atomic>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "kernels/memory/growing.h"

namespace vitrine::kernels {

namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 46;
constexpr std::uint64_t kMetaRanges = 4096;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

[[noreturn]] void throwExhausted(std::uint64_t bytes, const Tag& tag, std::string_view why = {}) {
    base::OutOfMemoryDetails details;
    details.what = std::string(tag.name) + std::string(why);
    details.requested = bytes;
    throw base::OutOfMemory(std::move(details));
}

/// What a limit on the addresses of this process leaves of them.
std::uint64_t addressesLeft() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

class HostResource final : public MemoryResource, public AddressSpace {
public:
    explicit HostResource(base::MemorySpace space) : space_(space) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        const std::uint64_t size = mappedBytes(bytes);
        if (size > kLargest) {
            throwExhausted(bytes, tag);
        }
        // Each piece has its own mapping. Pools above make such calls rare, and a free gives the pages back to the
        // system at once.
        void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address == MAP_FAILED) {
            throwExhausted(bytes, tag, size > addressesLeft() ? kAddressLimit : std::string_view());
        }
        if (size >= kHugePage) {
            // Large weights are read once for each token: fewer TLB misses. A refusal does no harm.
            madvise(address, size, MADV_HUGEPAGE);
        }
        return address;
    }
    void deallocate(void* address, std::uint64_t bytes, StreamRef) noexcept override {
        munmap(address, mappedBytes(bytes));
    }
    base::MemorySpace space() const override { return space_; }
    std::uint64_t largestFree() const override { return kLargest; }
    AddressSpace* addressSpace() override { return this; }

    std::byte* reserve(std::uint64_t bytes) override {
        // Under a limit on addresses (ulimit -v) much must be left for what is allocated later.
        constexpr std::uint64_t kParts = 4;
        if (bytes > addressesLeft() / kParts) {
            return nullptr;
        }
        void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address == MAP_FAILED) {
            return nullptr;
        }
        madvise(address, bytes, MADV_HUGEPAGE);
        return static_cast<std::byte*>(address);
    }
    bool map(std::byte* address, std::uint64_t bytes) override {
        return mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
    }
    void unmap(std::byte* address, std::uint64_t bytes) noexcept override {
        // The pages go back to the system at once; a refusal leaves them here until the range goes.
        madvise(address, bytes, MADV_DONTNEED);
        mprotect(address, bytes, PROT_NONE);
    }
    void release(std::byte* address, std::uint64_t bytes) noexcept override { munmap(address, bytes); }

private:
    static std::uint64_t mappedBytes(std::uint64_t bytes) { return bytes == 0 ? 1 : bytes; }

    base::MemorySpace space_;
};

class MetaResource final : public MemoryResource, public AddressSpace {
public:
    explicit MetaResource(base::MemorySpace space) : space_(space) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        if (bytes > kLargest || next_ > std::numeric_limits<std::uint64_t>::max() - 2 * kLargest) {
            throwExhausted(bytes, tag);
        }
        return take(bytes);
    }
    void deallocate(void*, std::uint64_t, StreamRef) noexcept override {}
    base::MemorySpace space() const override { return space_; }
    std::uint64_t largestFree() const override { return kLargest; }
    AddressSpace* addressSpace() override { return this; }

    std::byte* reserve(std::uint64_t bytes) override {
        const auto old = released_.find(bytes);
        if (old != released_.end()) {
            std::byte* const address = old->second;
            released_.erase(old);
            return address;
        }
        return bytes > kLargest || next_ > std::numeric_limits<std::uint64_t>::max() - 2 * kLargest
                   ? nullptr
                   : static_cast<std::byte*>(take(bytes));
    }
    bool map(std::byte*, std::uint64_t) override { return true; }
    void unmap(std::byte*, std::uint64_t) noexcept override {}
    void release(std::byte* address, std::uint64_t bytes) noexcept override {
        // Ranges are wide, and a context that lives long makes many of them. So released ranges are given out again.
        released_.emplace(bytes, address);
    }

private:
    void* take(std::uint64_t bytes) {
        const std::uint64_t address = next_;
        const std::uint64_t size = alignedBytes(bytes == 0 ? 1 : bytes);
        // Like a driver: reservations start on 2 MiB borders.
        next_ += (size + kHugePage - 1) / kHugePage * kHugePage;
        return reinterpret_cast<void*>(address); // NOLINT(performance-no-int-to-ptr)
    }
    /// A range of its own for every resource: a dry run beside a Meta run must not seem to share memory with it.
    static std::uint64_t firstAddress() {
        static std::atomic<std::uint64_t> made{0};
        return 0x700000000 + (made++ % kMetaRanges) * kLargest;
    }

    base::MemorySpace space_;
    std::uint64_t next_ = firstAddress();
    std::multimap<std::uint64_t, std::byte*> released_; ///< ranges by size
};

} // namespace

std::unique_ptr<MemoryResource> makeHostResource(base::MemorySpace space) {
    return std::make_unique<HostResource>(space);
}

std::unique_ptr<MemoryResource> makeMetaResource(base::MemorySpace space) {
    return std::make_unique<MetaResource>(space);
}

} // namespace vitrine::kernels
