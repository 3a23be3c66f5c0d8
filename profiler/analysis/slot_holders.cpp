// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/slot_holders.h"

#include <algorithm>

namespace vitrine::profiler {

void SlotHolders::take(std::int32_t slot, base::TimeNs place, std::int32_t request) {
    if (const auto held = held_.find(request); held != held_.end()) {
        if (held->second == slot) {
            return;
        }
        leave(place, request);
    }
    std::vector<Change>& changes = slots_[slot];
    if (!changes.empty()) {
        held_.erase(changes.back().request);
    }
    changes.push_back({place, request});
    held_[request] = slot;
}

void SlotHolders::leave(base::TimeNs place, std::int32_t request) {
    if (const auto held = held_.find(request); held != held_.end()) {
        slots_[held->second].push_back({place, -1});
        held_.erase(held);
    }
}

std::vector<std::int32_t> SlotHolders::at(base::TimeNs place) const {
    std::vector<std::int32_t> requests;
    for (const auto& [slot, changes] : slots_) {
        const auto after = std::upper_bound(changes.begin(), changes.end(), place,
                                            [](base::TimeNs at, const Change& change) { return at < change.place; });
        if (after != changes.begin() && (after - 1)->request >= 0) {
            requests.push_back((after - 1)->request);
        }
    }
    std::sort(requests.begin(), requests.end());
    return requests;
}

std::int32_t firstOfMost(const std::vector<std::int32_t>& numbers, std::int32_t rows, std::int32_t shown) {
    const auto among = [&](std::int32_t first) {
        return std::lower_bound(numbers.begin(), numbers.end(), first + rows) -
               std::lower_bound(numbers.begin(), numbers.end(), first);
    };
    std::ptrdiff_t most = among(shown);
    std::int32_t best = shown;
    for (const std::int32_t number : numbers) {
        const std::ptrdiff_t count = among(number);
        if (count > most) {
            const std::int32_t last = *(std::lower_bound(numbers.begin(), numbers.end(), number + rows) - 1);
            most = count;
            best = std::max(0, number - (rows - 1 - (last - number)) / 2);
        }
    }
    return best;
}

} // namespace vitrine::profiler
