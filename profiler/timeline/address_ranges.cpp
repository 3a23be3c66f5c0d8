// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/timeline/address_ranges.h"

#include <algorithm>
#include <iterator>

namespace vitrine::profiler {

std::uint64_t AddressMap::compact(std::uint64_t address) const {
    const auto after = std::ranges::upper_bound(ranges_, address, {}, &AddressRange::begin);
    if (after == ranges_.begin()) {
        return 0;
    }
    const AddressRange& range = *std::prev(after);
    return range.compact + std::min(address, range.end) - range.begin;
}

std::uint64_t AddressMap::extent() const {
    return ranges_.empty() ? 0 : ranges_.back().compact + ranges_.back().end - ranges_.back().begin;
}

void AddressRanges::add(std::uint64_t begin, std::uint64_t end) {
    const auto near = [](std::uint64_t rangeEnd, std::uint64_t nextBegin) {
        return nextBegin <= rangeEnd || nextBegin - rangeEnd < kJoinedGap;
    };
    auto next = ranges_.upper_bound(begin);
    if (next != ranges_.begin() && near(std::prev(next)->second, begin)) {
        --next;
        if (end <= next->second) {
            return;
        }
        begin = next->first;
        next = ranges_.erase(next);
    }
    while (next != ranges_.end() && near(end, next->first)) {
        end = std::max(end, next->second);
        next = ranges_.erase(next);
    }
    ranges_.emplace(begin, end);
}

AddressMap AddressRanges::view() const {
    std::vector<AddressRange> ranges;
    ranges.reserve(ranges_.size());
    std::uint64_t compact = 0;
    for (const auto& [begin, end] : ranges_) {
        ranges.push_back({begin, end, compact});
        compact += end - begin;
    }
    return AddressMap(std::move(ranges));
}

} // namespace vitrine::profiler
