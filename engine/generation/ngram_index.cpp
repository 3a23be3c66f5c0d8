// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/ngram_index.h"

#include <algorithm>
#include <cstddef>

namespace vitrine::engine {
namespace {

std::span<const std::int32_t> endingAt(std::span<const std::int32_t> text, std::int64_t place, std::int64_t size) {
    return text.subspan(static_cast<std::size_t>(place - size), static_cast<std::size_t>(size));
}

/// FNV-1a over tokens, and a last mixing: a table of 2^n slots looks at the low bits.
std::uint64_t hashOf(std::span<const std::int32_t> tokens) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::int32_t token : tokens) {
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3;
    }
    return hash ^ (hash >> 29);
}

} // namespace

bool NgramPlaces::holds(std::span<const std::int32_t> text, std::size_t slot, std::int64_t place) const {
    return slots_[slot] != kNowhere &&
           std::ranges::equal(endingAt(text, slots_[slot], size_), endingAt(text, place, size_));
}

/// The slot of a place where the same tokens stand, or the one that such a place would take. It is free, unless a text
/// was made so that many of its sequences have the same hash: others lose their slots then, and time is not lost.
std::size_t NgramPlaces::slotOf(std::span<const std::int32_t> text, std::int64_t place) const {
    constexpr int kMostProbes = 64;
    std::size_t slot = hashOf(endingAt(text, place, size_)) & (slots_.size() - 1);
    for (int probe = 1; probe < kMostProbes && slots_[slot] != kNowhere && !holds(text, slot, place); ++probe) {
        slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
}

std::int32_t NgramPlaces::find(std::span<const std::int32_t> text, std::int64_t place) const {
    if (slots_.empty() || place < size_) {
        return kNowhere;
    }
    const std::size_t slot = slotOf(text, place);
    return holds(text, slot, place) ? slots_[slot] : kNowhere;
}

std::int32_t NgramPlaces::add(std::span<const std::int32_t> text, std::int64_t place) {
    if (place < size_) {
        return kNowhere;
    }
    if (2 * (used_ + 1) > slots_.size()) {
        grow(text);
    }
    const std::size_t slot = slotOf(text, place);
    const std::int32_t before = holds(text, slot, place) ? slots_[slot] : kNowhere;
    used_ += slots_[slot] == kNowhere ? 1 : 0;
    slots_[slot] = static_cast<std::int32_t>(place);
    return before;
}

void NgramPlaces::grow(std::span<const std::int32_t> text) {
    constexpr std::size_t kFewest = 64;
    std::vector<std::int32_t> old(std::max(kFewest, 4 * slots_.size()), kNowhere);
    old.swap(slots_);
    for (const std::int32_t place : old) {
        if (place != kNowhere) {
            slots_[slotOf(text, place)] = place;
        }
    }
}

/// Adds the places of all tokens but the last one: the last tokens do not stand before themselves.
void NgramIndex::read(std::span<const std::int32_t> text) {
    if (before_.size() > text.size()) {
        *this = NgramIndex(sizes_);
    }
    while (before_.size() < text.size()) {
        const auto place = static_cast<std::int64_t>(before_.size());
        before_.push_back(shortest_.add(text, place));
        longest_.add(text, place);
    }
}

std::int32_t NgramIndex::bestPlace(std::span<const std::int32_t> text) const {
    const auto end = static_cast<std::int64_t>(text.size());
    const std::int32_t whole = longest_.find(text, end);
    if (whole != NgramPlaces::kNowhere) {
        return whole;
    }
    const auto at = [&](std::int64_t index) { return text[static_cast<std::size_t>(index)]; };
    std::int32_t best = NgramPlaces::kNowhere;
    std::int64_t most = 0;
    std::int32_t place = shortest_.find(text, end);
    for (int looked = 0; place != NgramPlaces::kNowhere && looked < kMostPlaces; ++looked) {
        std::int64_t equal = sizes_.shortest;
        while (equal < std::min<std::int64_t>(sizes_.longest, place) && at(place - 1 - equal) == at(end - 1 - equal)) {
            ++equal;
        }
        if (equal > most) {
            most = equal;
            best = place;
        }
        place = before_[static_cast<std::size_t>(place)];
    }
    return best;
}

std::vector<std::int32_t> NgramIndex::draft(std::span<const std::int32_t> text, std::int64_t tokens) {
    read(text);
    const std::int64_t place = bestPlace(text);
    const auto end = static_cast<std::int64_t>(text.size());
    std::vector<std::int32_t> draft;
    for (std::int64_t from = place; place >= 0 && from < place + tokens; ++from) {
        draft.push_back(from < end ? text[static_cast<std::size_t>(from)]
                                   : draft[static_cast<std::size_t>(from - end)]);
    }
    return draft;
}

} // namespace vitrine::engine
