// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

#include "kernels/memory/physical.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <sys/mman.h>

#include "base/error.h"
#include "base/units.h"

namespace vitrine::kernels {

namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 46;
constexpr std::uint64_t kMetaRanges = 4096;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

[[noreturn]] void throwExhausted(std::uint64_t bytes, const Tag& tag) {
    base::OutOfMemoryFacts facts;
    facts.what = std::string(tag.name);
    facts.requested = bytes;
    throw base::OutOfMemory(std::move(facts));
}

class HostResource final : public MemoryResource {
public:
    explicit HostResource(base::MemorySpace space) : space_(space) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        const std::uint64_t size = mappedBytes(bytes);
        if (size > kLargest) {
            throwExhausted(bytes, tag);
        }
        // A map of its own for every piece: pools above make them rare, and a free gives the pages back at once.
        void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (address == MAP_FAILED) {
            throwExhausted(bytes, tag);
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

private:
    static std::uint64_t mappedBytes(std::uint64_t bytes) { return bytes == 0 ? 1 : bytes; }

    base::MemorySpace space_;
};

class MetaResource final : public MemoryResource {
public:
    explicit MetaResource(base::MemorySpace space) : space_(space) {}

    void* allocate(std::uint64_t bytes, StreamRef, const Tag& tag) override {
        if (bytes > kLargest || next_ > std::numeric_limits<std::uint64_t>::max() - 2 * kLargest) {
            throwExhausted(bytes, tag);
        }
        const std::uint64_t address = next_;
        const std::uint64_t size = alignedBytes(bytes == 0 ? 1 : bytes);
        // Like a driver: reservations start on 2 MiB borders.
        next_ += (size + kHugePage - 1) / kHugePage * kHugePage;
        return reinterpret_cast<void*>(address);
    }
    void deallocate(void*, std::uint64_t, StreamRef) noexcept override {}
    base::MemorySpace space() const override { return space_; }
    std::uint64_t largestFree() const override { return kLargest; }

private:
    /// A range of its own for every resource: a dry run beside a Meta run must not seem to share memory with it.
    static std::uint64_t firstAddress() {
        static std::atomic<std::uint64_t> made{0};
        return 0x700000000 + (made++ % kMetaRanges) * kLargest;
    }

    base::MemorySpace space_;
    std::uint64_t next_ = firstAddress();
};

} // namespace

std::unique_ptr<MemoryResource> makeHostResource(base::MemorySpace space) {
    return std::make_unique<HostResource>(space);
}

std::unique_ptr<MemoryResource> makeMetaResource(base::MemorySpace space) {
    return std::make_unique<MetaResource>(space);
}

} // namespace vitrine::kernels
