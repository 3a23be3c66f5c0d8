// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_pool.h"

#include <algorithm>

namespace vitrine::engine {
namespace {

constexpr std::int64_t kLongestTable = 8192; ///< tokens; longer tables follow the sequences, so that uploads stay small
constexpr std::int64_t kUsualSequence = 4096; ///< where it is not known how long they get

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

} // namespace

std::int32_t bucketRows(std::int32_t rows, std::int32_t slots) {
    const auto upTo = [rows](std::int32_t step) { return (rows + step - 1) / step * step; };
    const std::int32_t filled = rows <= 2 ? rows : rows <= 16 ? upTo(4) : rows <= 64 ? upTo(8) : upTo(32);
    return rows <= slots ? std::min(filled, slots) : filled;
}

std::int64_t swapPagesIn(std::uint64_t bytes, const ModelConfig& config, const KvCacheOptions& cache) {
    std::uint64_t largest = 1;
    for (const KvGroup& group : kvGroups(config, cache)) {
        largest = std::max(largest, kernels::alignedBytes(group.pageBytes));
    }
    return static_cast<std::int64_t>(bytes / largest);
}

void poolFor(KvCacheOptions& cache, const SchedulerOptions& scheduler, Model& model, std::int64_t longestPrompt,
             std::int64_t longestSequence) {
    const bool isStatic = scheduler.mode == BatchMode::Static;
    const bool known = longestSequence > 0;
    const std::int64_t most = known ? longestSequence : model.config().maxPositions;
    const std::int64_t usual = known ? most : most > 0 ? std::min(most, kUsualSequence) : kUsualSequence;
    const std::int64_t prompt = known ? longestPrompt : most;
    // Padding of a static batch has sequences of its own.
    // Rings that are kept for later prompts may take as many pages as those that run.
    const std::int64_t rings = isStatic || cache.sharePrefixes ? 2 : 1;
    const std::int64_t sequences = std::int64_t{scheduler.slots} * rings + scheduler.otherPages;
    cache.poolSequences = cache.poolSequences > 0 ? cache.poolSequences : sequences;
    cache.tableTokens = cache.tableTokens > 0 ? cache.tableTokens : std::min(usual, kLongestTable);
    if (cache.poolPages > 0) {
        cache.poolPages += scheduler.otherPages;
        return;
    }
    std::int64_t wanted = 1;
    std::uint64_t pageBytes = 1;
    std::uint64_t ringBytes = 0;
    for (const KvGroup& group : kvGroups(model.config(), cache)) {
        if (group.ring()) {
            ringBytes += kernels::alignedBytes(group.pageBytes) * static_cast<std::uint64_t>(kvPoolPages(group, cache));
            continue;
        }
        pageBytes = kernels::alignedBytes(group.pageBytes);
        const std::int64_t own = ceilDivide(most + (isStatic ? prompt : 0), group.pageTokens);
        const std::int64_t padding = isStatic ? ceilDivide(prompt, group.pageTokens) : 0;
        // Prefixes of requests that nobody knows yet are worth all memory.
        const bool bounded = known || (most > 0 && !cache.sharePrefixes);
        wanted = bounded ? scheduler.slots * (own + padding) + scheduler.otherPages : kvMostPages(group);
        wanted = std::min(wanted, kvMostPages(group));
    }
    kernels::Memory& memory = model.context().memory();
    const std::uint64_t held = memory.statistics().reserved;
    const std::uint64_t free = memory.budget() > held ? memory.budget() - held : 0;
    const std::uint64_t usable = free / 100 * 85;
    const std::uint64_t room = usable > ringBytes ? (usable - ringBytes) / pageBytes : 0;
    cache.poolPages = std::max<std::int64_t>(1, std::min<std::int64_t>(wanted, static_cast<std::int64_t>(room)));
}

} // namespace vitrine::engine
