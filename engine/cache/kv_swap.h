// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Keeps the pages of preempted requests in host memory, on every rank that has a part of them
// (engine/cache/kv_rank_swap.h). All ranks do the same, so what one says of numbers of pages holds for each.
//
// A KvSwap belongs to the thread of its context and must not outlive the cache.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/cache/kv_rank_swap.h"

namespace vitrine::engine {

class KvSwap {
public:
    static constexpr std::uint64_t kHalf = KvRankSwap::kHalf;
    static constexpr std::uint64_t kHalves = KvRankSwap::kHalves;
    static std::uint64_t halfFor(std::span<const KvGroup> groups, const KvCacheOptions& options) {
        return KvRankSwap::halfFor(groups, options);
    }

    /// As KvRankSwap, on each rank of the cache.
    KvSwap(kernels::Context& context, KvCache& cache, std::int64_t pages, std::uint64_t half = kHalf);
    ~KvSwap();
    KvSwap(const KvSwap&) = delete; // ranks copy from its buffers
    KvSwap& operator=(const KvSwap&) = delete;

    // As those of KvRankSwap. When one rank has no host memory, nothing was moved on any.
    void out(std::int32_t request, std::span<const std::vector<std::int32_t>> pages);
    void in(std::int32_t request, std::span<const std::vector<std::int32_t>> pages);
    void askedAt(base::TimeNs time);
    void drop(std::int32_t request);

    std::int64_t heldPages() const { return ranks_.front()->heldPages(); }
    std::int64_t mostPages() const { return ranks_.front()->mostPages(); }
    std::uint64_t hostBytes() const;                                              ///< of all ranks
    std::uint64_t stagingBytes() const { return ranks_.front()->stagingBytes(); } ///< of one

private:
    void onEveryRank(const std::function<void(KvRankSwap& swap)>& work);

    KvCache& cache_;
    std::vector<std::unique_ptr<KvRankSwap>> ranks_;
};

} // namespace vitrine::engine
