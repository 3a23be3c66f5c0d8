// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/kv_swap.h"

namespace vitrine::engine {

KvSwap::KvSwap(kernels::Context& context, KvCache& cache, std::int64_t pages, std::uint64_t half) : cache_(cache) {
    ranks_.resize(static_cast<std::size_t>(cache.ranks()));
    const auto make = [&](kernels::Context& of, int rank) {
        ranks_[static_cast<std::size_t>(rank)] = std::make_unique<KvRankSwap>(of, cache, pages, half, rank);
    };
    if (cache.ranks() == 1) {
        make(context, 0);
        return;
    }
    try {
        cache.onEveryRank(make);
    } catch (...) {
        cache.onEveryRank([&](kernels::Context&, int rank) { ranks_[static_cast<std::size_t>(rank)].reset(); });
        throw;
    }
}

KvSwap::~KvSwap() {
    cache_.onEveryRank([&](kernels::Context&, int rank) { ranks_[static_cast<std::size_t>(rank)].reset(); });
}

void KvSwap::onEveryRank(const std::function<void(KvRankSwap& swap)>& work) {
    cache_.onEveryRank([&](kernels::Context&, int rank) { work(*ranks_[static_cast<std::size_t>(rank)]); });
}

void KvSwap::out(std::int32_t request, std::span<const std::vector<std::int32_t>> pages) {
    try {
        onEveryRank([&](KvRankSwap& swap) { swap.out(request, pages); });
    } catch (...) {
        drop(request); // of the ranks that had room
        throw;
    }
}

void KvSwap::in(std::int32_t request, std::span<const std::vector<std::int32_t>> pages) {
    onEveryRank([&](KvRankSwap& swap) { swap.in(request, pages); });
}

void KvSwap::askedAt(base::TimeNs time) {
    onEveryRank([&](KvRankSwap& swap) { swap.askedAt(time); });
}

void KvSwap::drop(std::int32_t request) {
    onEveryRank([&](KvRankSwap& swap) { swap.drop(request); });
}

std::uint64_t KvSwap::hostBytes() const {
    std::uint64_t bytes = 0;
    for (const auto& rank : ranks_) {
        bytes += rank->hostBytes();
    }
    return bytes;
}

} // namespace vitrine::engine
