// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Pages that are known by their tokens, and rings that are kept for prompts which begin like earlier ones.

#include <algorithm>

#include "engine/cache/page_book.h"

namespace vitrine::engine {

std::size_t PageBook::ChainHash::operator()(const ChainKey& key) const {
    std::uint64_t hash = 0xCBF29CE484222325ULL ^ key.before;
    for (const std::int32_t token : key.tokens) {
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(hash);
}

/// A known page loses its tokens.
void PageBook::forget(std::int32_t page) {
    Page& entry = pools_[static_cast<std::size_t>(chainGroup_)].pages[static_cast<std::size_t>(page)];
    const auto key = keys_.find(entry.chain);
    if (key != keys_.end()) {
        known_.erase(key->second);
        keys_.erase(key);
        dropRings(entry.chain);
    }
    entry.chain = 0;
}

/// The pages of the longest known beginning, in order.
std::vector<PageBook::Known> PageBook::knownPages(std::span<const std::int32_t> prompt) const {
    std::vector<Known> out;
    if (!sharesPrefixes()) {
        return out;
    }
    const auto pageTokens = static_cast<std::size_t>(groups_[static_cast<std::size_t>(chainGroup_)].pageTokens);
    ChainKey key;
    for (std::size_t begin = 0; begin + pageTokens <= prompt.size(); begin += pageTokens) {
        key.before = out.empty() ? 0 : out.back().chain;
        const auto first = prompt.begin() + static_cast<std::ptrdiff_t>(begin);
        key.tokens.assign(first, first + static_cast<std::ptrdiff_t>(pageTokens));
        const auto found = known_.find(key);
        if (found == known_.end()) {
            break;
        }
        out.push_back(found->second);
    }
    return out;
}

std::int64_t PageBook::knownPrefix(std::span<const std::int32_t> prompt) const {
    const auto pages = static_cast<std::int64_t>(knownPages(prompt).size());
    return pages == 0 ? 0 : pages * groups_[static_cast<std::size_t>(chainGroup_)].pageTokens;
}

/// Pages of the longest beginning that rings were kept for and that leaves a token of the prompt.
std::size_t PageBook::longestKept(const std::vector<Known>& known, std::size_t promptTokens) const {
    const auto pageTokens = static_cast<std::size_t>(groups_[static_cast<std::size_t>(chainGroup_)].pageTokens);
    for (std::size_t pages = known.size(); pages > 0; --pages) {
        if (pages * pageTokens < promptTokens && rings_.contains(known[pages - 1].chain)) {
            return pages;
        }
    }
    return 0;
}

std::int64_t PageBook::adoptPrefix(int sequence, std::span<const std::int32_t> prompt) {
    Sequence& fresh = at(sequence);
    const auto group = static_cast<std::size_t>(std::max(chainGroup_, 0));
    if (!sharesPrefixes() || fresh.length != 0 || !fresh.pages[group].empty()) {
        return 0;
    }
    std::vector<Known> known = knownPages(prompt);
    if (sharesRings()) {
        known.resize(longestKept(known, prompt.size()));
    }
    if (known.empty()) {
        return 0;
    }
    for (const Known& one : known) {
        const Page& entry = pools_[group].pages[static_cast<std::size_t>(one.page)];
        if (entry.holders == 0) {
            cached_.erase({entry.lastUse, one.page});
        }
        hold(chainGroup_, one.page, sequence);
        fresh.pages[group].push_back(one.page);
        fresh.chains.push_back(one.chain);
    }
    if (sharesRings()) {
        SavedRings& rings = rings_.at(known.back().chain);
        rings.lastUse = ++clock_;
        for (std::size_t ring = 0; ring < groups_.size(); ++ring) {
            for (const std::int32_t page : rings.pages[ring]) {
                hold(static_cast<int>(ring), page, sequence);
                fresh.pages[ring].push_back(page);
            }
        }
    }
    // The last token is computed again, for its logits.
    fresh.length = std::min(static_cast<std::int64_t>(known.size()) * groups_[group].pageTokens,
                            static_cast<std::int64_t>(prompt.size()) - 1);
    fresh.longest = fresh.length;
    sharedTokens_ += static_cast<std::uint64_t>(fresh.length);
    return fresh.length;
}

void PageBook::publish(int sequence, std::span<const std::int32_t> history) {
    Sequence& kept = at(sequence);
    if (!sharesPrefixes() || kept.outdated) {
        return;
    }
    const auto group = static_cast<std::size_t>(chainGroup_);
    const auto pageTokens = static_cast<std::size_t>(groups_[group].pageTokens);
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
        const std::int32_t page = kept.pages[group][index];
        Page& entry = pools_[group].pages[static_cast<std::size_t>(page)];
        if (entry.chain != 0) {
            forget(page); // it is known by what it held before
        }
        entry.chain = nextChain_++;
        kept.chains.push_back(entry.chain);
        keys_.emplace(entry.chain, key);
        known_.emplace(std::move(key), Known{page, entry.chain});
    }
}

void PageBook::forgetPrefixes() {
    if (!sharesPrefixes()) {
        return;
    }
    Group& pool = pools_[static_cast<std::size_t>(chainGroup_)];
    for (std::int32_t page = 0; page < static_cast<std::int32_t>(pool.pages.size()); ++page) {
        const Page& entry = pool.pages[static_cast<std::size_t>(page)];
        if (entry.chain == 0) {
            continue;
        }
        forget(page);
        if (entry.holders == 0) {
            cached_.erase({entry.lastUse, page});
            pool.free.insert(page);
            noteChange(chainGroup_, page);
        }
    }
    for (Sequence& sequence : sequences_) {
        sequence.outdated = sequence.length > 0;
        sequence.chains.clear();
    }
}

void PageBook::keepRings(int sequence) {
    const Sequence& kept = at(sequence);
    if (!sharesRings() || kept.chains.empty() || !keys_.contains(kept.chains.back()) ||
        kept.length !=
            static_cast<std::int64_t>(kept.chains.size()) * groups_[static_cast<std::size_t>(chainGroup_)].pageTokens) {
        return;
    }
    // Pages whose tokens are known under another page have its chain, and so its rings.
    const auto [place, isNew] = rings_.try_emplace(kept.chains.back());
    place->second.lastUse = ++clock_;
    if (!isNew) {
        return;
    }
    place->second.pages.resize(groups_.size());
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        const auto index = static_cast<std::size_t>(group);
        for (std::int64_t i = 0; group != chainGroup_ && i < pagesFor(group, kept.length); ++i) {
            const std::int32_t page = kept.pages[index][static_cast<std::size_t>(i)];
            ++pools_[index].pages[static_cast<std::size_t>(page)].keeps;
            place->second.pages[index].push_back(page);
        }
    }
}

void PageBook::dropRings(std::uint64_t chain) {
    const auto found = rings_.find(chain);
    if (found == rings_.end()) {
        return;
    }
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        Group& pool = pools_[group];
        for (const std::int32_t page : found->second.pages[group]) {
            Page& entry = pool.pages[static_cast<std::size_t>(page)];
            if (--entry.keeps == 0 && entry.holders == 0) {
                --pool.keptOnly;
                pool.free.insert(page);
                noteChange(static_cast<int>(group), page);
            }
        }
    }
    rings_.erase(found);
}

/// False when none are kept.
bool PageBook::dropOldestRings() {
    const auto oldest = std::min_element(
        rings_.begin(), rings_.end(), [](const auto& a, const auto& b) { return a.second.lastUse < b.second.lastUse; });
    if (oldest == rings_.end()) {
        return false;
    }
    dropRings(oldest->first);
    ++evictions_;
    return true;
}

bool PageBook::ringIsShort(int sequence, std::int64_t tokens) const {
    for (int group = 0; group < static_cast<int>(groups_.size()); ++group) {
        if (groups_[static_cast<std::size_t>(group)].ringPages > 0 &&
            missing(sequence, group, tokens) > available(group)) {
            return true;
        }
    }
    return false;
}

} // namespace vitrine::engine
