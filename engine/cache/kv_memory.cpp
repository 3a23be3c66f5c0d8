// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The memory of a cache: one range of addresses for each group, backed as far as pages were opened.

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "engine/cache/kv_cache.h"
#include "kernels/context/context.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {
namespace {

/// Block tables count in units of kMemoryAlignment with 32 bits.
constexpr std::uint64_t kMostBytes =
    std::uint64_t{std::numeric_limits<std::int32_t>::max()} * kernels::kMemoryAlignment;

/// Where a pool that needs `needed` bytes of a range grows to: a little of what is left ahead, for the steps need
/// memory too.
std::uint64_t aheadOf(std::uint64_t needed, const KvRange& range, kernels::Memory& memory,
                      const KvCacheOptions& options) {
    const std::uint64_t free = memory.budget() - std::min(memory.budget(), memory.statistics().reserved);
    return std::min(needed + std::min(options.aheadBytes, free / 16), range.capacity());
}

} // namespace

std::int64_t kvMostPages(const KvGroup& group) {
    return static_cast<std::int64_t>(kMostBytes / kernels::alignedBytes(group.pageBytes));
}

/// Reserves addresses for all that could ever be needed. No memory is mapped behind them yet.
void KvCache::reserveRanges() {
    std::vector<PageGroup> pageGroups;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const KvGroup& kind = groups_[group];
        const std::uint64_t stride = pageStride(static_cast<int>(group));
        std::int64_t pages = kvPoolPages(kind, options_);
        if (isPaged() && pages < 1) {
            throw base::Internal("a paged KV cache needs pages");
        }
        if (isPaged() && pages > kvMostPages(kind)) {
            throw base::Unsupported("KV cache: the pool has more pages than block tables can name; take fewer");
        }
        if (!isPaged()) {
            const std::uint64_t most = std::min(std::max(context_.memory().budget(), stride), kMostBytes);
            pages = static_cast<std::int64_t>(most / stride);
        }
        ranges_.push_back(std::make_unique<KvRange>(context_, options_.everyRank,
                                                    static_cast<std::uint64_t>(pages) * stride,
                                                    tagOf(static_cast<int>(group), 1)));
        pageGroups.push_back({kind.pageTokens, kind.ringPages, pages});
    }
    backed_.resize(groups_.size());
    entered_.resize(groups_.size());
    book_ = PageBook(std::move(pageGroups), isPaged() && options_.sharePrefixes);
    for (std::size_t group = 0; isPaged() && group < groups_.size(); ++group) {
        book_.setBacked(static_cast<int>(group), 0);
    }
    if (isPaged() && context_.tracer().level() != kernels::ProfileLevel::Off) {
        book_.takeChanges(); // from here on they are kept
    }
}

std::uint64_t KvCache::pageStride(int group) const {
    return kernels::alignedBytes(groups_[static_cast<std::size_t>(group)].pageBytes);
}

kernels::Tag KvCache::tagOf(int group, std::int64_t pages) const {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    const auto layers = static_cast<std::int64_t>(kind.layers.size());
    const kernels::Shape page{layers, halves_, kind.pageTokens, kvHeads_, headDim_};
    const kernels::Shape several{pages, layers, halves_, kind.pageTokens, kvHeads_ * headDim_};
    return {base::MemoryCategory::KvCache, names_[static_cast<std::size_t>(group)], options_.dtype,
            isPaged() ? several : page};
}

std::byte* KvCache::pageData(int group, std::int32_t page, int rank) const {
    return ranges_[static_cast<std::size_t>(group)]->data(rank) + static_cast<std::uint64_t>(page) * pageStride(group);
}

void KvCache::backPages() {
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        KvRange& range = *ranges_[static_cast<std::size_t>(group)];
        const std::uint64_t needed = static_cast<std::uint64_t>(book_.opened(group)) * pageStride(group);
        if (needed <= range.backed()) {
            continue;
        }
        const bool ahead = isPaged() && range.tryGrow(aheadOf(needed, range, context_.memory(), options_));
        if (!ahead) {
            range.grow(needed, tagOf(group, book_.opened(group) - backed_[static_cast<std::size_t>(group)]));
        }
    }
    reportPool();
}

bool KvCache::backAhead(int group, std::int64_t pages) {
    const auto index = static_cast<std::size_t>(group);
    const std::int64_t wanted = std::min(pages, book_.groups()[index].pages);
    if (wanted <= backed_[index]) {
        return true;
    }
    KvRange& range = *ranges_[index];
    const std::uint64_t needed = static_cast<std::uint64_t>(wanted) * pageStride(group);
    const bool grew = range.tryGrow(aheadOf(needed, range, context_.memory(), options_)) || range.tryGrow(needed);
    if (!grew) {
        // The memory that is left may be enough for some of the pages.
        for (std::uint64_t more = needed - range.backed(); more > 0; more /= 2) {
            range.tryGrow(std::min(range.backed() + more, needed));
        }
    }
    reportPool();
    return grew;
}

void KvCache::requireBacked(int group, std::int64_t pages) {
    const auto index = static_cast<std::size_t>(group);
    ranges_[index]->grow(static_cast<std::uint64_t>(pages) * pageStride(group), tagOf(group, pages - backed_[index]));
    reportPool();
}

/// Paged: counts the pages that got memory since the last call as allocated, in the page book too.
void KvCache::reportPool() {
    bool grew = false;
    for (int group = 0; isPaged() && group < static_cast<int>(groups_.size()); ++group) {
        const auto index = static_cast<std::size_t>(group);
        const std::uint64_t stride = pageStride(group);
        const std::int64_t pages =
            std::min(book_.groups()[index].pages, static_cast<std::int64_t>(ranges_[index]->backed() / stride));
        const std::int64_t more = pages - backed_[index];
        if (more > 0) {
            ranges_[index]->enter(static_cast<std::uint64_t>(backed_[index]) * stride,
                                  static_cast<std::uint64_t>(more) * stride, tagOf(group, more));
            entered_[index].push_back(backed_[index]);
            backed_[index] = pages;
            book_.setBacked(group, pages);
            grew = true;
        }
    }
    if (grew) {
        context_.tracer().counter("kv_pool_bytes", static_cast<double>(poolBytes()));
    }
}

void KvCache::giveBack() {
    if (!isPaged()) {
        return;
    }
    book_.forgetPrefixes();
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        const auto index = static_cast<std::size_t>(group);
        const std::uint64_t stride = pageStride(group);
        const std::int64_t held = book_.closeFree(group);
        std::vector<std::int64_t>& entered = entered_[index];
        while (!entered.empty() && entered.back() >= held) {
            backed_[index] = entered.back();
            ranges_[index]->leave(static_cast<std::uint64_t>(backed_[index]) * stride);
            entered.pop_back();
        }
        ranges_[index]->shrink(static_cast<std::uint64_t>(backed_[index]) * stride);
        book_.setBacked(group, backed_[index]);
    }
    context_.tracer().counter("kv_pool_bytes", static_cast<double>(poolBytes()));
}

/// Room for `tokens` more tokens of a sequence. Throws OutOfMemory; what other sequences hold is then as before.
void KvCache::growSequence(int sequence, std::int64_t tokens) {
    std::vector<std::size_t> held;
    held.reserve(groups_.size());
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        held.push_back(book_.pages(sequence, group).size());
    }
    if (!book_.grow(sequence, tokens)) {
        throwShort(sequence, tokens);
    }
    if (isPaged()) {
        backPages();
        return;
    }
    try {
        backPages();
    } catch (const base::OutOfMemory&) {
        dropPages(sequence, book_.length(sequence));
        throw;
    }
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        const auto index = static_cast<std::size_t>(group);
        for (const std::int32_t page : book_.pages(sequence, group).subspan(held[index])) {
            ranges_[index]->enter(static_cast<std::uint64_t>(page) * pageStride(group), groups_[index].pageBytes,
                                  tagOf(group, 1));
        }
    }
}

/// No group has pages enough for `tokens` more tokens.
void KvCache::throwShort(int sequence, std::int64_t tokens) {
    base::OutOfMemoryDetails details;
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        const auto index = static_cast<std::size_t>(group);
        const std::int64_t missing = book_.missing(sequence, group, tokens);
        if (missing <= book_.available(group)) {
            continue;
        }
        if (!isPaged()) {
            // More than there are addresses for, and so more than the budget: the range says what holds it.
            ranges_[index]->grow(static_cast<std::uint64_t>(book_.opened(group) + missing) * pageStride(group),
                                 tagOf(group, missing));
        }
        details.what = names_[index];
        details.requested = pageStride(group) * static_cast<std::uint64_t>(missing);
        details.budget = pageStride(group) * static_cast<std::uint64_t>(book_.groups()[index].pages);
        details.held = pageStride(group) * static_cast<std::uint64_t>(book_.counts(group).used);
        details.largestFree = pageStride(group) * static_cast<std::uint64_t>(book_.available(group));
        break;
    }
    details.category = base::categoryName(base::MemoryCategory::KvCache);
    throw base::OutOfMemory(details);
}

/// The sequence keeps the pages of its first `length` tokens. Except in a paged cache, the memory after the last page
/// is given back.
void KvCache::dropPages(int sequence, std::int64_t length) {
    for (int group = 0; !isPaged() && group < static_cast<int>(groups_.size()); ++group) {
        const std::span<const std::int32_t> held = book_.pages(sequence, group);
        const auto kept = static_cast<std::size_t>(book_.pagesFor(group, length));
        for (const std::int32_t page : held.subspan(std::min(kept, held.size()))) {
            ranges_[static_cast<std::size_t>(group)]->leave(static_cast<std::uint64_t>(page) * pageStride(group));
        }
    }
    book_.trim(sequence, length);
    for (int group = 0; !isPaged() && group < static_cast<int>(groups_.size()); ++group) {
        ranges_[static_cast<std::size_t>(group)]->shrink(static_cast<std::uint64_t>(book_.closeFree(group)) *
                                                         pageStride(group));
    }
}

void KvCache::copyShared() {
    for (const PageCopy& copy : book_.takeCopies()) {
        copyPage(copy);
    }
}

void KvCache::copyPage(const PageCopy& copy) {
    const auto index = static_cast<std::size_t>(copy.group);
    ranges_[index]->onEveryRank([&](kernels::Context& context, int rank) {
        context.copy(pageData(copy.group, copy.from, rank), pageData(copy.group, copy.to, rank),
                     groups_[index].pageBytes);
    });
}

std::uint64_t KvCache::poolBytes() const {
    std::uint64_t total = 0;
    for (int group = 0; isPaged() && group < static_cast<int>(groups_.size()); ++group) {
        total += static_cast<std::uint64_t>(backed_[static_cast<std::size_t>(group)]) * pageStride(group);
    }
    return total;
}

} // namespace vitrine::engine
