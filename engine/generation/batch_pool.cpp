// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_pool.h"

#include <algorithm>
#include <utility>

#include "base/integers.h"
#include "engine/cache/kv_swap.h"
#include "kernels/context/context.h"
#include "kernels/ops/sampling/sample.h"

namespace vitrine::engine {
namespace {

constexpr std::int64_t kLongestTable = 8192; ///< tokens; longer tables follow the sequences, so that uploads stay small
constexpr std::int64_t kUsualSequence = 4096; ///< where it is not known how long they get

/// The pool of a batch and what stands beside it, by the pages of groups that grow.
class PoolCost {
public:
    PoolCost(Model& model, const KvCacheOptions& cache, const SchedulerOptions& scheduler)
        : cache_(cache), groups_(kvGroups(model.config(), cache)), unit_(model.context().traits().mapUnit),
          swaps_(swaps(scheduler)) {
        if (scheduler.otherPages > 0) {
            beside_ =
                kernels::alignedBytes(2 * sizeof(std::int32_t) * static_cast<std::uint64_t>(carriedRows(scheduler)));
        }
    }

    /// Bytes that a pool of so many pages takes, in whole units.
    std::uint64_t of(std::int64_t pages) const {
        KvCacheOptions options = cache_;
        options.poolPages = pages;
        std::uint64_t total = beside_ + (swaps_ ? KvSwap::kHalves * KvSwap::halfFor(groups_, options) : 0);
        for (const KvGroup& group : groups_) {
            const std::uint64_t bytes =
                kernels::alignedBytes(group.pageBytes) * static_cast<std::uint64_t>(kvPoolPages(group, options));
            total += (bytes + unit_ - 1) / unit_ * unit_;
        }
        return total;
    }

    /// The largest number of pages, from `least` to `most`, that so many bytes are enough for; `least` where none is.
    std::int64_t pagesIn(std::uint64_t bytes, std::int64_t least, std::int64_t most) const {
        while (least < most) {
            const std::int64_t middle = least + (most - least + 1) / 2;
            if (of(middle) <= bytes) {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        return least;
    }

private:
    KvCacheOptions cache_;
    std::vector<KvGroup> groups_;
    std::uint64_t unit_;
    bool swaps_;
    std::uint64_t beside_ = 0;
};

/// The group that grows; null where all layers slide.
const KvGroup* growingGroup(const std::vector<KvGroup>& groups) {
    const auto found = std::find_if(groups.begin(), groups.end(), [](const KvGroup& group) { return !group.ring(); });
    return found == groups.end() ? nullptr : &*found;
}

/// What steps of a batch need of the step arena at most.
class StepCost {
public:
    /// REQUIRES the longest sequence. `free`: bytes of memory, which bound how much all sequences have said.
    StepCost(Model& model, const KvCacheOptions& cache, const SchedulerOptions& scheduler, const Expected& expected,
             std::uint64_t free)
        : model_(model), cache_(cache), longest_(expected.longestSequence), forbidden_(expected.mostForbidden),
          experts_(expected.experts), free_(free),
          // Padding of a static batch has sequences of its own; rows that fill up a bucket have the one more.
          sequences_(scheduler.slots * (scheduler.mode == BatchMode::Static ? 2 : 1) + scheduler.otherPages) {
        cache_.kind = KvCacheKind::Paged;
        cache_.sharePrefixes = false;
        shares_ = cache.sharePrefixes;
    }

    /// Of `tokens` tokens: all in one sequence, spread over all slots, or single tokens beside the rest of a prompt.
    std::uint64_t of(std::int64_t tokens) const {
        const std::int64_t many = std::min(tokens, sequences_);
        KvCacheOptions cache = cache_;
        cache.poolSequences = many;
        cache.poolPages = 0;
        for (const KvGroup& group : kvGroups(model_.config(), cache)) {
            cache.poolPages =
                std::max(cache.poolPages, base::ceilDivide(longest_ + tokens, group.pageTokens) + 2 * many);
        }
        kernels::SampleParameters drawn;
        drawn.temperature = 1;
        const std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens), 0);
        // A row may check drafts, as many as can be rolled back.
        const std::int64_t checked = 1 + cache_.rollBackTokens;
        const std::vector<kernels::SampleParameters> sampling(static_cast<std::size_t>(many * checked), drawn);
        std::uint64_t most = 0;
        for (const auto& [sequences, even] :
             {std::pair{std::int64_t{1}, true}, std::pair{many, true}, std::pair{many, false}}) {
            StepBatch batch;
            batch.experts = experts_;
            std::int64_t left = tokens;
            for (std::int64_t others = sequences - 1; others >= 0; --others) {
                const bool first = batch.sequences.empty();
                const std::int64_t piece = even ? left / (others + 1) : first ? left - others : 1;
                batch.sequences.push_back(
                    {static_cast<int>(batch.sequences.size()), std::span(ids).first(static_cast<std::size_t>(piece))});
                left -= piece;
            }
            std::int64_t rows = 0;
            for (StepSequence& sequence : batch.sequences) {
                const auto piece = static_cast<std::int64_t>(sequence.tokens.size());
                sequence.logitTokens = piece <= checked ? piece : 1;
                rows += sequence.logitTokens;
            }
            batch.sampling = std::span(sampling).first(static_cast<std::size_t>(rows));
            const auto piece = static_cast<std::int64_t>(batch.sequences.front().tokens.size());
            most = std::max(most, model_.stepBytes(batch, std::max<std::int64_t>(longest_ - piece, 0), cache));
        }
        return kernels::alignedBytes(most + listBytes(std::min(many * checked, tokens)));
    }

private:
    /// What sampling looks at, uploaded with the step's other inputs: what was said before, which penalties ask for (an
    /// id, and an id with its change), and what must not be said.
    std::uint64_t listBytes(std::int64_t rows) const {
        constexpr std::uint64_t kWord = sizeof(std::int32_t);
        constexpr std::uint64_t kWordsOfSaid = 3;
        const auto forbidden = static_cast<std::uint64_t>(rows * forbidden_);
        std::uint64_t said = kWord * static_cast<std::uint64_t>(rows * (longest_ + 1));
        const std::vector<KvGroup> groups = kvGroups(model_.config(), cache_);
        if (const KvGroup* grows = growingGroup(groups); grows != nullptr && !shares_) {
            // Of each token but the last one the pages hold keys and values.
            said = std::min(said, kWord * (free_ / grows->tokenBytes + static_cast<std::uint64_t>(rows)));
        }
        return kWordsOfSaid * said + kWord * (forbidden + kernels::kSampleListStep);
    }

    Model& model_;
    KvCacheOptions cache_;
    std::int64_t longest_, forbidden_;
    bool experts_;
    std::uint64_t free_;
    std::int64_t sequences_;
    bool shares_ = false;
};

/// Fills in what is 0; of pages, as many as the slots can come to.
void fillIn(KvCacheOptions& cache, const SchedulerOptions& scheduler, const Model& model, const Expected& expected) {
    const bool isStatic = scheduler.mode == BatchMode::Static;
    const bool known = expected.longestSequence > 0;
    const std::int64_t most = known ? expected.longestSequence : model.config().maxPositions;
    const std::int64_t usual = known ? most : most > 0 ? std::min(most, kUsualSequence) : kUsualSequence;
    const std::int64_t prompt = known ? expected.longestPrompt : most;
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
    cache.poolPages = 1;
    const std::vector<KvGroup> groups = kvGroups(model.config(), cache);
    if (const KvGroup* grows = growingGroup(groups)) {
        const std::int64_t own = base::ceilDivide(most + (isStatic ? prompt : 0), grows->pageTokens);
        const std::int64_t padding = isStatic ? base::ceilDivide(prompt, grows->pageTokens) : 0;
        // Which requests will come is unknown, so prefixes for them may take all memory.
        const bool bounded = known || (most > 0 && !cache.sharePrefixes);
        const std::int64_t wanted =
            bounded ? scheduler.slots * (own + padding) + scheduler.otherPages : kvMostPages(*grows);
        cache.poolPages = std::min(wanted, kvMostPages(*grows));
    }
}

/// The longest sequence that may come.
std::int64_t longestOf(const KvCacheOptions& cache, const Model& model, std::int64_t known, std::uint64_t free) {
    const ModelConfig& config = model.config();
    if (known > 0) {
        return known;
    }
    if (config.maxPositions > 0 && config.rope.type != RopeType::Dynamic) {
        return config.maxPositions;
    }
    constexpr std::int64_t kLongestLooked = std::int64_t{1} << 20; // a step of a longer one needs little more
    const std::vector<KvGroup> groups = kvGroups(config, cache);
    const KvGroup* const grows = growingGroup(groups);
    const auto held = grows == nullptr ? 0 : static_cast<std::int64_t>(free / grows->tokenBytes);
    return std::clamp(held, kUsualSequence, kLongestLooked);
}

} // namespace

std::int32_t bucketRows(std::int32_t rows, std::int32_t slots) {
    const auto upTo = [rows](std::int32_t step) { return (rows + step - 1) / step * step; };
    const std::int32_t filled = rows <= 2 ? rows : rows <= 16 ? upTo(4) : rows <= 64 ? upTo(8) : upTo(32);
    return rows <= slots ? std::min(filled, slots) : filled;
}

std::int64_t carriedRows(const SchedulerOptions& scheduler) {
    return bucketRows(scheduler.slots, scheduler.slots);
}

bool swaps(const SchedulerOptions& scheduler) {
    return scheduler.mode == BatchMode::Continuous && scheduler.preemption == Preemption::Swap;
}

std::int64_t swapPagesIn(std::uint64_t bytes, const ModelConfig& config, const KvCacheOptions& cache) {
    std::uint64_t largest = 1;
    for (const KvGroup& group : kvGroups(config, cache)) {
        largest = std::max(largest, kernels::alignedBytes(group.pageBytes));
    }
    return static_cast<std::int64_t>(bytes / largest);
}

bool fitBatch(KvCacheOptions& cache, SchedulerOptions& scheduler, Model& model, const Expected& expected) {
    const bool chosen = cache.poolPages > 0;
    fillIn(cache, scheduler, model, expected);
    kernels::Memory& memory = model.context().memory();
    memory.trim();
    // A step arena that is too small goes before a larger one comes.
    const std::uint64_t arena = memory.step().capacity();
    const std::uint64_t held = memory.statistics().reserved - arena;
    const std::uint64_t free =
        (memory.budget() - std::min(memory.budget(), held)) / kernels::kMemoryAlignment * kernels::kMemoryAlignment;
    const std::int64_t longest = longestOf(cache, model, expected.longestSequence, free);
    const PoolCost pool(model, cache, scheduler);
    const StepCost steps(model, cache, scheduler,
                         {expected.longestPrompt, longest, expected.mostForbidden, expected.experts}, free);
    const std::vector<KvGroup> groups = kvGroups(model.config(), cache);
    const KvGroup* const grows = growingGroup(groups);
    const std::int64_t leastTokens = expected.longestSequence > 0 ? longest : std::min(longest, kUsualSequence);
    const std::int64_t leastPages =
        grows == nullptr ? 1 : base::ceilDivide(leastTokens, grows->pageTokens) + scheduler.otherPages;
    const std::uint64_t whole = pool.of(cache.poolPages);
    const std::uint64_t least = pool.of(std::min(leastPages, cache.poolPages));
    // No step has more than all that the slots hold, padding included.
    std::int64_t tokens = std::min(scheduler.tokenBudget, 2 * scheduler.slots * longest);
    std::uint64_t need = std::max(arena, steps.of(tokens));
    // What steps of so many tokens leave the pool wherever they are chosen.
    const auto beside = [&] {
        return tokens > scheduler.slots ? std::max(least, std::min(whole, need / 15 * 85)) : least;
    };
    std::uint64_t most = chosen ? whole : std::max(least, std::min(whole, free / 100 * 85));
    while (tokens > 1 && need + beside() > free) {
        most = std::min(most, beside());
        tokens = tokens > scheduler.slots ? std::max<std::int64_t>(tokens / 2, scheduler.slots) : tokens / 2;
        need = std::max(arena, steps.of(tokens));
    }
    const std::uint64_t room = std::min(free - std::min(need, free), most);
    cache.poolPages = pool.pagesIn(room, std::min(1 + scheduler.otherPages, cache.poolPages), cache.poolPages);
    scheduler.tokenBudget = std::min(scheduler.tokenBudget, tokens);
    // Without want of memory swaps get staging buffers of their usual size.
    const std::uint64_t spare = model.context().traits().mapUnit * (groups.size() + 2) +
                                (swaps(scheduler) ? KvSwap::kHalves * KvSwap::kHalf : 0);
    if (need + pool.of(cache.poolPages) + spare <= free) {
        return false;
    }
    memory.step().ensureCapacity(need);
    return true;
}

} // namespace vitrine::engine
