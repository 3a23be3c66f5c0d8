// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_pool.h"

#include <algorithm>
#include <utility>

namespace vitrine::engine {
namespace {

constexpr std::int64_t kLongestTable = 8192; ///< tokens; longer tables follow the sequences, so that uploads stay small
constexpr std::int64_t kUsualSequence = 4096; ///< where it is not known how long they get

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

/// The most that steps of `tokens` tokens take: all in one sequence, spread over all slots, or single tokens beside the rest of a
/// prompt.
std::uint64_t stepBytesOf(const SchedulerOptions& scheduler, std::int64_t tokens, std::int64_t longestSequence,
                          KvCacheOptions cache, Model& model) {
    // Padding of a static batch has sequences of its own; rows that fill up a bucket have the one more.
    const std::int64_t many = std::min<std::int64_t>(
        tokens, scheduler.slots * (scheduler.mode == BatchMode::Static ? 2 : 1) + scheduler.otherPages);
    cache.kind = KvCacheKind::Paged;
    cache.sharePrefixes = false;
    cache.poolSequences = many;
    cache.poolPages = 0;
    for (const KvGroup& group : kvGroups(model.config(), cache)) {
        cache.poolPages = std::max(cache.poolPages, ceilDivide(longestSequence + tokens, group.pageTokens) + 2 * many);
    }
    kernels::SampleParameters drawn;
    drawn.temperature = 1;
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 0);
    const std::vector<kernels::SampleParameters> sampling(static_cast<std::size_t>(many), drawn);
    std::uint64_t most = 0;
    for (const auto& [sequences, even] :
         {std::pair{std::int64_t{1}, true}, std::pair{many, true}, std::pair{many, false}}) {
        StepBatch batch;
        std::int64_t left = tokens;
        for (std::int64_t others = sequences - 1; others >= 0; --others) {
            const bool first = batch.sequences.empty();
            const std::int64_t piece = even ? left / (others + 1) : first ? left - others : 1;
            batch.sequences.push_back(
                {static_cast<int>(batch.sequences.size()), std::span(ids).first(static_cast<std::size_t>(piece))});
            left -= piece;
        }
        batch.sampling = std::span(sampling).first(static_cast<std::size_t>(sequences));
        const auto piece = static_cast<std::int64_t>(batch.sequences.front().tokens.size());
        most = std::max(most, model.stepBytes(batch, std::max<std::int64_t>(longestSequence - piece, 0), cache));
    }
    // Repetition penalties bring what was said before, and all step inputs are uploaded together.
    return most + sizeof(std::int32_t) * static_cast<std::uint64_t>(longestSequence);
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

bool fitSteps(KvCacheOptions& cache, SchedulerOptions& scheduler, Model& model, std::int64_t longestSequence) {
    kernels::Memory& memory = model.context().memory();
    const auto freeBytes = [&memory] {
        const std::uint64_t held = memory.statistics().reserved;
        return memory.budget() > held ? memory.budget() - held : 0;
    };
    const std::uint64_t free = freeBytes();
    std::uint64_t pageBytes = 1;
    std::uint64_t ringBytes = 0;
    std::uint64_t longest = 0; // pages of the longest sequence
    for (const KvGroup& group : kvGroups(model.config(), cache)) {
        const std::uint64_t page = kernels::alignedBytes(group.pageBytes);
        if (group.ring()) {
            ringBytes += page * static_cast<std::uint64_t>(kvPoolPages(group, cache));
            continue;
        }
        pageBytes = page;
        longest = page * static_cast<std::uint64_t>(ceilDivide(longestSequence, group.pageTokens));
    }
    // No step has more than all that the slots hold, padding included.
    std::int64_t tokens = std::min(scheduler.tokenBudget, 2 * scheduler.slots * longestSequence);
    std::uint64_t need = stepBytesOf(scheduler, tokens, longestSequence, cache, model);
    const std::uint64_t pool = ringBytes + pageBytes * static_cast<std::uint64_t>(cache.poolPages);
    // Devices give memory in units: the last one of each group, of the steps and of small tensors is hardly ever full.
    const std::uint64_t unit = std::uint64_t{2} << 20;
    if (pool + need + unit * (kvGroups(model.config(), cache).size() + 2) <= free) {
        return false;
    }
    const auto tooLarge = [&] {
        return tokens > scheduler.slots ? need > std::max(free / 100 * 15, free - std::min(pool, free))
                                        : need + ringBytes + longest > free;
    };
    while (tokens > 1 && tooLarge()) {
        tokens = tokens > scheduler.slots ? std::max<std::int64_t>(tokens / 2, scheduler.slots) : tokens / 2;
        need = stepBytesOf(scheduler, tokens, longestSequence, cache, model);
    }
    memory.step().ensureCapacity(need);
    const std::uint64_t left = freeBytes();
    const std::uint64_t room = left > ringBytes ? (left - ringBytes) / pageBytes : 0;
    cache.poolPages = std::clamp<std::int64_t>(static_cast<std::int64_t>(room), 1, cache.poolPages);
    scheduler.tokenBudget = std::min(scheduler.tokenBudget, tokens);
    return true;
}

} // namespace vitrine::engine
