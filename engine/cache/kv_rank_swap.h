// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Keeps what one rank has of the pages of preempted requests in host memory. It is copied out and back while steps run.
//
// A page that goes out is first copied into a staging buffer on the device, in order with the steps, so the next holder
// of the page need not wait. From there it goes to the host on a side stream. A page that comes back is copied to
// another staging buffer while the pending step still runs, and from there to its place before the next step. A step
// waits only for pages that do not fit into the staging buffers (two halves for each direction) or that are still being
// copied. Pages are moved whole, however many tokens they hold.
//
// Host memory is taken in slabs of places of equal size; any page fits into a place. There are as many places as were
// ever needed at the same time, and never more than `pages`. They are kept until the end. On CUDA this memory is
// pinned.
//
// A KvRankSwap belongs to the thread of its context and must not outlive the cache.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/kv_cache.h"
#include "kernels/context/side_stream.h"
#include "kernels/memory/memory.h"
#include "kernels/memory/resource.h"

namespace vitrine::engine {

class KvRankSwap {
public:
    static constexpr std::uint64_t kHalf = std::uint64_t{16}
                                           << 20; ///< bytes of a half of a staging buffer, unless pages are larger

    /// Bytes of a half when memory is short: all halves together take at most an eighth of the pool, unless pages are
    /// larger.
    static std::uint64_t halfFor(std::span<const KvGroup> groups, const KvCacheOptions& options);
    static constexpr std::uint64_t kHalves = 4; ///< two for each direction

    /// `pages` is the most pages that the host holds. Takes kHalves halves of device memory, and the first slab if the
    /// host has memory for a page. Throws OutOfMemory. `place`: of the context among the ranks of the cache.
    KvRankSwap(kernels::Context& context, KvCache& cache, std::int64_t pages, std::uint64_t half, int place);

    /// Copies the pages of a request to the host. `pages` lists them by group, as PageMove does. The copies have the
    /// contents after all steps so far. REQUIRES room for them among the pages that the host may hold. When it throws
    /// OutOfMemory, nothing was moved.
    void out(std::int32_t request, std::span<const std::vector<std::int32_t>> pages);
    /// Copies the pages of a request back, into as many pages of each group, and forgets the request.
    void in(std::int32_t request, std::span<const std::vector<std::int32_t>> pages);
    /// On Meta: the time at which the host asks for the copies that follow (SideStream::askedAt).
    void askedAt(base::TimeNs time) {
        out_.askedAt(time);
        in_.askedAt(time);
    }
    /// Forgets a request that will not come back, and frees its places on the host.
    void drop(std::int32_t request);

    std::int64_t heldPages() const { return held_; }
    std::int64_t mostPages() const { return most_; }
    std::uint64_t hostBytes() const { return static_cast<std::uint64_t>(places_) * place_; } ///< allocated
    std::uint64_t stagingBytes() const { return staging_.bytes(); }

private:
    struct Item {
        std::byte* page = nullptr;
        std::byte* place = nullptr; ///< on the host
        std::uint64_t bytes = 0;
    };
    struct Half {
        std::byte* data = nullptr;
        kernels::SideStream::Point freed; ///< when the last reader was done
    };
    struct Away {
        std::vector<std::byte*> places;
        kernels::SideStream::Point written;
    };

    void addSlab();
    std::byte* takePlace();
    std::vector<Item> itemsOf(std::span<const std::vector<std::int32_t>> pages, const std::vector<std::byte*>& places);
    template <class Move> void eachPiece(const std::vector<Item>& items, Move move) const;
    void giveBack(const std::vector<std::byte*>& places);

    kernels::Context& context_;
    KvCache& cache_;
    int cachePlace_ = 0;
    std::int64_t limit_ = 0;
    std::uint64_t place_ = 0; ///< bytes: the largest page
    std::uint64_t half_ = 0;
    std::int64_t places_ = 0; ///< in all slabs
    std::unique_ptr<kernels::Arena> arena_;
    kernels::Buffer staging_; ///< all of the arena
    std::vector<kernels::Buffer> slabs_;
    std::vector<std::byte*> free_;
    std::map<std::int32_t, Away> away_;
    std::array<Half, 2> outHalves_, inHalves_;
    std::size_t nextOut_ = 0, nextIn_ = 0;
    kernels::SideStream::Point broughtBack_; ///< what was read last
    std::int64_t held_ = 0, most_ = 0;
    kernels::SideStream out_, in_; // last: their copies end before the buffers go
};

} // namespace vitrine::engine
