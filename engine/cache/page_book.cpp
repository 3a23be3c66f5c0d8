// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/cache/page_book.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::engine {
namespace {

std::int64_t ceilDivide(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

} // namespace

std::size_t PageBook::ChainHash::operator()(const ChainKey& key) const {
    std::uint64_t hash = 0xCBF29CE484222325ULL ^ key.before;
    for (const std::int32_t token : key.tokens) {
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
}

PageBook::PageBook(std::vector<PageGroup> groups, bool sharePrefixes) : groups_(std::move(groups)) {
    for (const PageGroup& group : groups_) {
        if (group.pageTokens < 1 || group.ringPages < 0 || group.pages < 0) {
            throw base::Internal("pages of a pool need tokens");
        }
        Group& pool = pools_.emplace_back();
        pool.pages.resize(static_cast<std::size_t>(group.pages));
        for (std::int64_t page = group.pages; page > 0; --page) {
            pool.free.push_back(static_cast<std::int32_t>(page - 1)); // the lowest is taken first
        }
    }
    sharesPrefixes_ = sharePrefixes && groups_.size() == 1 && groups_[0].ringPages == 0;
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

std::span<const std::int32_t> PageBook::pages(int sequence, int group) const {
    return at(sequence).pages[static_cast<std::size_t>(group)];
}

std::int64_t PageBook::pagesFor(int group, std::int64_t tokens) const {
    const PageGroup& kind = groups_[static_cast<std::size_t>(group)];
    const std::int64_t pages = ceilDivide(tokens, kind.pageTokens);
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
    const std::int64_t kept = group == 0 ? static_cast<std::int64_t>(cached_.size()) : 0;
    return static_cast<std::int64_t>(pools_[static_cast<std::size_t>(group)].free.size()) + kept;
}

/// Calls `visit(index)` for each held page that the next `tokens` tokens write into and that others hold too.
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
        if (pools_[static_cast<std::size_t>(group)].pages[static_cast<std::size_t>(held[slot])].holders > 1) {
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
            // What is written there is no longer what the chain says.
            kept.chains.resize(std::min(kept.chains.size(), index));
        }
        if (sharesPrefixes_) {
            // A page that is written anew (behind a trim) is no longer what it is known by.
            for (std::size_t index =
                     std::max(kept.chains.size(), static_cast<std::size_t>(kept.length / groups_[0].pageTokens));
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
}

void PageBook::trim(int sequence, std::int64_t length) {
    Sequence& kept = at(sequence);
    if (length < 0 || length > kept.length) {
        throw base::Internal("a cache is trimmed to fewer tokens than it has");
    }
    kept.length = length;
    kept.chains.resize(std::min(kept.chains.size(), static_cast<std::size_t>(length / groups_[0].pageTokens)));
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
    if (pool.free.empty() && group == 0 && !cached_.empty()) {
        const std::int32_t oldest = cached_.begin()->second;
        cached_.erase(cached_.begin());
        forget(oldest);
        pool.free.push_back(oldest);
        ++evictions_;
    }
    if (pool.free.empty()) {
        throw base::Internal("a page was taken from an empty pool");
    }
    const std::int32_t page = pool.free.back();
    pool.free.pop_back();
    hold(group, page, owner);
    return page;
}

void PageBook::hold(int group, std::int32_t page, int owner) {
    Group& pool = pools_[static_cast<std::size_t>(group)];
    Page& entry = pool.pages[static_cast<std::size_t>(page)];
    if (++entry.holders == 1) {
        entry.owner = owner;
        ++pool.used;
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
        } else {
            pool.free.push_back(page);
        }
    }
    noteChange(group, page);
}

/// A known page loses its tokens.
void PageBook::forget(std::int32_t page) {
    Page& entry = pools_[0].pages[static_cast<std::size_t>(page)];
    const auto key = keys_.find(entry.chain);
    if (key != keys_.end()) {
        known_.erase(key->second);
        keys_.erase(key);
    }
    entry.chain = 0;
}

std::int64_t PageBook::adoptPrefix(int sequence, std::span<const std::int32_t> prompt) {
    Sequence& fresh = at(sequence);
    if (!sharesPrefixes_ || fresh.length != 0 || !fresh.pages[0].empty() || prompt.empty()) {
        return 0;
    }
    const auto pageTokens = static_cast<std::size_t>(groups_[0].pageTokens);
    ChainKey key;
    for (std::size_t begin = 0; begin + pageTokens <= prompt.size(); begin += pageTokens) {
        key.before = fresh.chains.empty() ? 0 : fresh.chains.back();
        key.tokens.assign(prompt.begin() + static_cast<std::ptrdiff_t>(begin),
                          prompt.begin() + static_cast<std::ptrdiff_t>(begin + pageTokens));
        const auto found = known_.find(key);
        if (found == known_.end()) {
            break;
        }
        const Page& entry = pools_[0].pages[static_cast<std::size_t>(found->second.page)];
        if (entry.holders == 0) {
            cached_.erase({entry.lastUse, found->second.page});
        }
        hold(0, found->second.page, sequence);
        fresh.pages[0].push_back(found->second.page);
        fresh.chains.push_back(found->second.chain);
    }
    // The last token is computed again, for its logits.
    fresh.length = std::min(static_cast<std::int64_t>(fresh.chains.size() * pageTokens),
                            static_cast<std::int64_t>(prompt.size()) - 1);
    sharedTokens_ += static_cast<std::uint64_t>(fresh.length);
    return fresh.length;
}

void PageBook::publish(int sequence, std::span<const std::int32_t> history) {
    Sequence& kept = at(sequence);
    if (!sharesPrefixes_) {
        return;
    }
    const auto pageTokens = static_cast<std::size_t>(groups_[0].pageTokens);
    const std::size_t tokens = std::min(static_cast<std::size_t>(kept.length), history.size());
    while ((kept.chains.size() + 1) * pageTokens <= tokens) {
        const std::size_t index = kept.chains.size();
        const auto begin = history.begin() + static_cast<std::ptrdiff_t>(index * pageTokens);
        ChainKey key{index == 0 ? 0 : kept.chains.back(), {begin, begin + static_cast<std::ptrdiff_t>(pageTokens)}};
        const auto found = known_.find(key);
        if (found != known_.end()) {
            kept.chains.push_back(found->second.chain);
            continue;
        }
        const std::int32_t page = kept.pages[0][index];
        Page& entry = pools_[0].pages[static_cast<std::size_t>(page)];
        if (entry.chain != 0) {
            forget(page); // it is known by what it held before
        }
        entry.chain = nextChain_++;
        kept.chains.push_back(entry.chain);
        keys_.emplace(entry.chain, key);
        known_.emplace(std::move(key), Known{page, entry.chain});
    }
}

PageCounts PageBook::counts(int group) const {
    const Group& pool = pools_[static_cast<std::size_t>(group)];
    PageCounts out;
    out.used = pool.used;
    out.shared = pool.shared;
    out.free = static_cast<std::int64_t>(pool.free.size());
    out.cached = static_cast<std::int64_t>(pool.pages.size()) - out.used - out.free;
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
        const Page& entry = pools_[static_cast<std::size_t>(group)].pages[static_cast<std::size_t>(page)];
        const base::PageState state = entry.holders > 0  ? base::PageState::Used
                                      : entry.chain != 0 ? base::PageState::Cached
                                                         : base::PageState::Free;
        out.push_back({0, group, page, state, entry.owner, entry.holders});
    }
    changed_.clear();
    return out;
}

} // namespace vitrine::engine
