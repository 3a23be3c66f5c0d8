// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/page_book.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "base/error.h"
#include "base/integers.h"

namespace vitrine::engine {
PageBook::PageBook(std::vector<PageGroup> groups, bool sharePrefixes) : groups_(std::move(groups)) {
    for (const PageGroup& group : groups_) {
        if (group.pageTokens < 1 || group.ringPages < 0 || group.pages < 0) {
            throw base::Internal("pages of a pool need tokens");
        }
        pools_.emplace_back().backed = group.pages;
    }
    const auto grows = [](const PageGroup& group) { return group.ringPages == 0; };
    if (sharePrefixes && std::count_if(groups_.begin(), groups_.end(), grows) == 1) {
        chainGroup_ = static_cast<int>(std::find_if(groups_.begin(), groups_.end(), grows) - groups_.begin());
    }
}

PageBook::Sequence& PageBook::at(int sequence) {
    return const_cast<Sequence&>(std::as_const(*this).at(sequence));
}

const PageBook::Sequence& PageBook::at(int sequence) const {
    if (!live(sequence)) {
        throw base::Internal(fmt::format("the KV cache has no sequence {}", sequence));
    }
    return sequences_[static_cast<std::size_t>(sequence)];
}

bool PageBook::live(int sequence) const {
    return sequence >= 0 && static_cast<std::size_t>(sequence) < sequences_.size() &&
           sequences_[static_cast<std::size_t>(sequence)].live;
}

std::int64_t PageBook::length(int sequence) const {
    return at(sequence).length;
}

std::int64_t PageBook::longest(int sequence) const {
    return at(sequence).longest;
}

std::span<const std::int32_t> PageBook::pages(int sequence, int group) const {
    return at(sequence).pages[static_cast<std::size_t>(group)];
}

std::int64_t PageBook::pagesFor(int group, std::int64_t tokens) const {
    const PageGroup& kind = groups_[static_cast<std::size_t>(group)];
    const std::int64_t pages = base::ceilDivide(tokens, kind.pageTokens);
    return kind.ringPages > 0 ? std::min(pages, kind.ringPages) : pages;
}

bool PageBook::couldHold(std::int64_t tokens, std::int64_t others) const {
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        if (pagesFor(static_cast<int>(group), tokens) > groups_[group].pages - others) {
            return false;
        }
    }
    return true;
}

int PageBook::addSequence() {
    int number = static_cast<int>(sequences_.size());
    if (freeSequences_.empty()) {
        sequences_.emplace_back();
    } else {
        number = *freeSequences_.begin();
        freeSequences_.erase(freeSequences_.begin());
    }
    Sequence& fresh = sequences_[static_cast<std::size_t>(number)];
    fresh = Sequence{};
    fresh.live = true;
    fresh.pages.resize(groups_.size());
    return number;
}

void PageBook::removeSequence(int sequence) {
    Sequence& gone = at(sequence);
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        // From the end, so that the end of a chain is the longest unused and goes first.
        for (auto page = gone.pages[group].rbegin(); page != gone.pages[group].rend(); ++page) {
            release(static_cast<int>(group), *page);
        }
    }
    gone = Sequence{};
    freeSequences_.insert(sequence);
}

int PageBook::fork(int sequence) {
    at(sequence);
    const int number = addSequence();
    sequences_[static_cast<std::size_t>(number)] = sequences_[static_cast<std::size_t>(sequence)];
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        for (const std::int32_t page : at(number).pages[group]) {
            hold(static_cast<int>(group), page, number);
        }
    }
    return number;
}

std::int64_t PageBook::available(int group) const {
    const Group& pool = pools_[static_cast<std::size_t>(group)];
    const std::int64_t kept = group == chainGroup_ ? static_cast<std::int64_t>(cached_.size()) : pool.keptOnly;
    const std::int64_t closed = groups_[static_cast<std::size_t>(group)].pages - opened(group);
    return closed + static_cast<std::int64_t>(pool.free.size()) + kept;
}

std::int64_t PageBook::opened(int group) const {
    return static_cast<std::int64_t>(pools_[static_cast<std::size_t>(group)].pages.size());
}

std::int64_t PageBook::openedFree(int group) const {
    return static_cast<std::int64_t>(pools_[static_cast<std::size_t>(group)].free.size());
}

void PageBook::setBacked(int group, std::int64_t pages) {
    pools_[static_cast<std::size_t>(group)].backed = std::min(pages, groups_[static_cast<std::size_t>(group)].pages);
}

std::int64_t PageBook::closeFree(int group) {
    Group& pool = pools_[static_cast<std::size_t>(group)];
    while (!pool.free.empty() && *pool.free.rbegin() + std::int64_t{1} == opened(group)) {
        pool.free.erase(std::prev(pool.free.end()));
        pool.pages.pop_back();
    }
    return opened(group);
}

void PageBook::limit(int group, std::int64_t pages) {
    groups_[static_cast<std::size_t>(group)].pages = std::max(pages, opened(group));
    setBacked(group, pools_[static_cast<std::size_t>(group)].backed);
}

/// Calls `visit(index)` for each held page that the next `tokens` tokens write into and that others hold or keep too.
template <class Visit>
void PageBook::eachSharedWrite(const Sequence& sequence, int group, std::int64_t tokens, Visit visit) const {
    const PageGroup& kind = groups_[static_cast<std::size_t>(group)];
    const auto& held = sequence.pages[static_cast<std::size_t>(group)];
    const auto count = static_cast<std::int64_t>(held.size());
    if (count == 0 || tokens == 0) {
        return;
    }
    const std::int64_t first = sequence.length / kind.pageTokens;
    std::int64_t last = (sequence.length + tokens - 1) / kind.pageTokens;
    if (kind.ringPages > 0) {
        last = std::min(last, first + kind.ringPages - 1);
    }
    for (std::int64_t page = first; page <= last; ++page) {
        const std::int64_t index = kind.ringPages > 0 ? page % kind.ringPages : page;
        if (index >= count) {
            continue;
        }
        const auto slot = static_cast<std::size_t>(index);
        const Page& entry = pools_[static_cast<std::size_t>(group)].pages[static_cast<std::size_t>(held[slot])];
        if (entry.holders > 1 || entry.keeps > 0) {
            visit(slot);
        }
    }
}

std::int64_t PageBook::missing(int sequence, int group, std::int64_t tokens) const {
    const Sequence& kept = at(sequence);
    const auto held = static_cast<std::int64_t>(kept.pages[static_cast<std::size_t>(group)].size());
    std::int64_t count = std::max<std::int64_t>(0, pagesFor(group, kept.length + tokens) - held);
    eachSharedWrite(kept, group, tokens, [&](std::size_t) { ++count; });
    return count;
}

bool PageBook::canGrow(int sequence, std::int64_t tokens) const {
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        if (missing(sequence, group, tokens) > available(group)) {
            return false;
        }
    }
    return true;
}

bool PageBook::grow(int sequence, std::int64_t tokens) {
    // What is kept is never worth more than what runs: without it pages need no copies.
    while (ringIsShort(sequence, tokens) && dropOldestRings()) {
    }
    if (!canGrow(sequence, tokens)) {
        return false;
    }
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        Sequence& kept = at(sequence);
        auto& held = kept.pages[static_cast<std::size_t>(group)];
        std::vector<std::size_t> shared;
        eachSharedWrite(kept, group, tokens, [&](std::size_t index) { shared.push_back(index); });
        for (const std::size_t index : shared) {
            const std::int32_t own = take(group, sequence);
            copies_.push_back({group, held[index], own});
            release(group, held[index]);
            held[index] = own;
            if (group == chainGroup_) {
                // What is written there is no longer what the chain says.
                kept.chains.resize(std::min(kept.chains.size(), index));
            }
        }
        if (group == chainGroup_) {
            // A page that is written again after a trim no longer holds the tokens by which it is known.
            const std::int64_t pageTokens = groups_[static_cast<std::size_t>(group)].pageTokens;
            for (std::size_t index = std::max(kept.chains.size(), static_cast<std::size_t>(kept.length / pageTokens));
                 index < held.size(); ++index) {
                forget(held[index]);
            }
        }
        const std::int64_t wanted = pagesFor(group, kept.length + tokens);
        while (static_cast<std::int64_t>(held.size()) < wanted) {
            held.push_back(take(group, sequence));
        }
    }
    return true;
}

void PageBook::commit(int sequence, std::int64_t tokens) {
    Sequence& kept = at(sequence);
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        if (pagesFor(group, kept.length + tokens) >
            static_cast<std::int64_t>(kept.pages[static_cast<std::size_t>(group)].size())) {
            throw base::Internal("tokens went into a KV cache without room for them");
        }
    }
    kept.length += tokens;
    kept.longest = std::max(kept.longest, kept.length);
}

void PageBook::trim(int sequence, std::int64_t length) {
    Sequence& kept = at(sequence);
    if (length < 0 || length > kept.length) {
        throw base::Internal("a cache is trimmed to fewer tokens than it has");
    }
    kept.length = length;
    if (sharesPrefixes()) {
        const std::int64_t pageTokens = groups_[static_cast<std::size_t>(chainGroup_)].pageTokens;
        kept.chains.resize(std::min(kept.chains.size(), static_cast<std::size_t>(length / pageTokens)));
    }
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        auto& held = kept.pages[static_cast<std::size_t>(group)];
        while (static_cast<std::int64_t>(held.size()) > pagesFor(group, length)) {
            release(group, held.back());
            held.pop_back();
        }
    }
}

std::vector<PageCopy> PageBook::takeCopies() {
    return std::exchange(copies_, {});
}

/// REQUIRES that a page is available.
std::int32_t PageBook::take(int group, int owner) {
    Group& pool = pools_[static_cast<std::size_t>(group)];
    if (pool.free.empty() && opened(group) < groups_[static_cast<std::size_t>(group)].pages) {
        pool.free.insert(static_cast<std::int32_t>(pool.pages.size()));
        pool.pages.emplace_back();
    }
    while (pool.free.empty() && pool.keptOnly > 0 && dropOldestRings()) {
    }
    if (pool.free.empty() && group == chainGroup_ && !cached_.empty()) {
        const std::int32_t oldest = cached_.begin()->second;
        cached_.erase(cached_.begin());
        forget(oldest);
        pool.free.insert(oldest);
        ++evictions_;
    }
    if (pool.free.empty()) {
        throw base::Internal("a page was taken from an empty pool");
    }
    const std::int32_t page = *pool.free.begin();
    pool.free.erase(pool.free.begin());
    hold(group, page, owner);
    return page;
}

void PageBook::hold(int group, std::int32_t page, int owner) {
    Group& pool = pools_[static_cast<std::size_t>(group)];
    Page& entry = pool.pages[static_cast<std::size_t>(page)];
    if (++entry.holders == 1) {
        entry.owner = owner;
        ++pool.used;
        pool.keptOnly -= entry.keeps > 0 ? 1 : 0;
    } else if (entry.holders == 2) {
        ++pool.shared;
    }
    noteChange(group, page);
}

void PageBook::release(int group, std::int32_t page) {
    Group& pool = pools_[static_cast<std::size_t>(group)];
    Page& entry = pool.pages[static_cast<std::size_t>(page)];
    if (entry.holders < 1) {
        throw base::Internal("a page of the KV cache was given back twice");
    }
    --entry.holders;
    if (entry.holders == 1) {
        --pool.shared;
    } else if (entry.holders == 0) {
        --pool.used;
        entry.owner = -1;
        if (entry.chain != 0) {
            entry.lastUse = ++clock_;
            cached_.emplace(entry.lastUse, page);
        } else if (entry.keeps > 0) {
            ++pool.keptOnly;
        } else {
            pool.free.insert(page);
        }
    }
    noteChange(group, page);
}

PageCounts PageBook::counts(int group) const {
    const Group& pool = pools_[static_cast<std::size_t>(group)];
    PageCounts out;
    out.used = pool.used;
    out.shared = pool.shared;
    out.cached = opened(group) - out.used - static_cast<std::int64_t>(pool.free.size());
    // What was opened since memory was made is in hands already.
    out.free = std::max(pool.backed, opened(group)) - out.used - out.cached;
    out.unbacked = groups_[static_cast<std::size_t>(group)].pages - out.used - out.cached - out.free;
    return out;
}

PageCounts PageBook::counts() const {
    PageCounts all;
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        const PageCounts one = counts(group);
        all.used += one.used;
        all.shared += one.shared;
        all.cached += one.cached;
        all.free += one.free;
        all.unbacked += one.unbacked;
    }
    return all;
}

double PageBook::fragmentation() const {
    // A shared page counts for each of its holders, on both sides alike.
    double slots = 0;
    double empty = 0;
    for (const Sequence& sequence : sequences_) {
        for (std::size_t group = 0; group < sequence.pages.size(); ++group) {
            const auto held = static_cast<std::int64_t>(sequence.pages[group].size()) * groups_[group].pageTokens;
            slots += static_cast<double>(held);
            empty += static_cast<double>(held - std::min(held, sequence.length));
        }
    }
    return slots > 0 ? empty / slots : 0;
}

void PageBook::noteChange(int group, std::int32_t page) {
    if (tracks_) {
        changed_.emplace(group, page);
    }
}

std::vector<base::KvPageEvent> PageBook::takeChanges() {
    tracks_ = true;
    std::vector<base::KvPageEvent> out;
    out.reserve(changed_.size());
    for (const auto& [group, page] : changed_) {
        const std::vector<Page>& pages = pools_[static_cast<std::size_t>(group)].pages;
        const Page entry = page < opened(group) ? pages[static_cast<std::size_t>(page)] : Page{};
        const base::PageState state = entry.holders > 0                     ? base::PageState::Used
                                      : entry.chain != 0 || entry.keeps > 0 ? base::PageState::Cached
                                                                            : base::PageState::Free;
        out.push_back({0, group, page, state, entry.owner, entry.holders});
    }
    changed_.clear();
    return out;
}

} // namespace vitrine::engine
