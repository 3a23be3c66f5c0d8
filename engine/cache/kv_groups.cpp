// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// How the layers of a model share pages, and what those come to.

#include <algorithm>

#include "base/integers.h"
#include "engine/cache/kv_cache.h"

namespace vitrine::engine {
namespace {

constexpr std::int64_t kRingPageTokens = 256;
constexpr std::uint64_t kScalesUnit = 16; ///< scales of a page begin at a multiple of it

} // namespace

std::vector<KvGroup> kvGroups(const ModelConfig& config, const KvCacheOptions& options) {
    const bool isStatic = options.kind == KvCacheKind::Static;
    std::vector<KvGroup> groups;
    for (std::size_t layer = 0; layer < config.layers.size(); ++layer) {
        const std::int64_t window = options.slidingSaves ? config.layers[layer].window : 0;
        auto group = std::find_if(groups.begin(), groups.end(), [&](const KvGroup& g) { return g.window == window; });
        if (group == groups.end()) {
            group = groups.insert(groups.end(), KvGroup{window > 0 ? "sliding" : "full", {}, window});
        }
        group->layers.push_back(static_cast<int>(layer));
    }
    for (KvGroup& group : groups) {
        const std::int64_t rows = config.kvHalves() * static_cast<std::int64_t>(group.layers.size()) * config.kvHeads;
        group.tokenBytes = static_cast<std::uint64_t>(rows) * kernels::kvRowBytes(options.dtype, config.headDim);
        std::int64_t pageTokens = options.pageTokens;
        if (isStatic) {
            pageTokens = options.maxTokens;
        } else if (pageTokens == 0) {
            // A ring is full soon. Larger pages mean fewer of them, and less memory is left unused.
            pageTokens = group.ring() && options.kind == KvCacheKind::Dynamic ? kRingPageTokens : kPageTokens;
        }
        if (group.ring()) {
            // Pages of equal size that hold the ring with the least waste.
            const std::int64_t kept = std::max<std::int64_t>(group.window - 1 + options.rollBackTokens, 1);
            group.ringTokens = group.window - 1 + options.rollBackTokens;
            group.ringPages = isStatic ? 1 : base::ceilDivide(kept, pageTokens);
            pageTokens = isStatic ? std::min(kept, pageTokens) : base::ceilDivide(kept, group.ringPages);
        }
        group.pageTokens = pageTokens;
        group.pageBytes = kernels::bytesOf(options.dtype, rows * config.headDim * pageTokens);
        if (kernels::isQuantizedKv(options.dtype)) {
            group.scalesAt = (group.pageBytes + kScalesUnit - 1) / kScalesUnit * kScalesUnit;
            group.pageBytes = group.scalesAt + static_cast<std::uint64_t>(rows * pageTokens) * sizeof(float);
        }
    }
    return groups;
}

std::int64_t kvPoolPages(const KvGroup& group, const KvCacheOptions& options) {
    return group.ring() ? group.ringPages * options.poolSequences : options.poolPages;
}

std::uint64_t kvPoolBytes(std::span<const KvGroup> groups, const KvCacheOptions& options) {
    std::uint64_t total = 0;
    for (const KvGroup& group : groups) {
        total += kernels::alignedBytes(group.pageBytes) * static_cast<std::uint64_t>(kvPoolPages(group, options));
    }
    return total;
}

} // namespace vitrine::engine
