// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A caching allocator: segments from upstream, cut and merged, kept until upstream refuses. Small requests (up to 1
// MiB) come from 2 MiB segments, larger ones from segments of their own rounded to 2 MiB; where upstream refuses that,
// from segments of their own size, so that small budgets are used to their end. Best fit; ties go to the older segment
// and the lower offset, never to an address, so every backend decides alike.

#include <memory>

#include "kernels/memory/resource.h"

namespace vitrine::kernels {

class CachingAllocator final : public MemoryResource {
public:
    explicit CachingAllocator(MemoryResource& upstream);
    ~CachingAllocator() override;
    CachingAllocator(const CachingAllocator&) = delete; // owns segments
    CachingAllocator& operator=(const CachingAllocator&) = delete;

    void* allocate(std::uint64_t bytes, StreamRef stream, const Tag& tag) override;
    void deallocate(void* address, std::uint64_t bytes, StreamRef stream) noexcept override;
    base::MemorySpace space() const override;
    std::uint64_t largestFree() const override;

    /// Gives segments without live pieces back to upstream.
    void trim() noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
